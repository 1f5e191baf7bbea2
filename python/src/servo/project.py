"""The project file `servo.toml`: which modules declare the project, and where they are.

    [project]
    name = "flights"       # by default the name of the directory, made valid
    modules = ["flights"]  # a package stands for all modules in it
    path = ["src"]         # where modules are, relative to the file; by default "src" if it exists, and "."

`[resources.…]` and `[env.…]` set the fields of resources (`servo.environment`). Other tables, `python` and
`storage` are for other parts of Servo.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from servo.environment import Settings, load_variables, settings_of

FILE_NAME: Final = "servo.toml"

_MAX_NAME: Final = 63
_KEYS: Final = ("name", "modules", "path", "python", "storage")
_EXAMPLE: Final = '[project]\nmodules = ["flights"]'


class Problem(NamedTuple):
    """A problem in a project file. Without a line it is about the file as a whole."""

    line: int | None
    message: str


class ProjectError(ValueError):
    """A project file is missing or wrong; `problems` has everything that is wrong with it.

    >>> str(ProjectError("/flights/servo.toml", [Problem(2, "modules is missing")]))
    '/flights/servo.toml:2: modules is missing'
    """

    def __init__(self, file: str, problems: list[Problem]) -> None:
        """Remember the file and its problems."""
        self.file = file
        self.problems = problems
        places = (file if line is None else f"{file}:{line}" for line, _ in problems)
        super().__init__(
            "\n".join(f"{place}: {each.message}" for place, each in zip(places, problems, strict=True))
        )


class Project(NamedTuple):
    """A project as its file describes it. All paths are absolute."""

    root: str
    """The directory of the file."""
    name: str
    modules: tuple[str, ...]
    path: tuple[str, ...]
    """The directories that modules are looked for in, in this order."""
    settings: Settings = Settings()
    """Values of the fields of resources."""

    @property
    def file(self) -> str:
        """The project file."""
        return os.path.join(self.root, FILE_NAME)

    def relative(self, file: str) -> str:
        """Write a path as everybody sees it: relative to the project if it is part of it, and with `/`.

        Bytes of a name that are not UTF-8 are written as escapes.

        >>> project = Project("/me/flights", "flights", ("flights",), ("/me/flights/src", "/me/lib"))
        >>> project.relative("/me/flights/src/raw.py"), project.relative("/me/lib/io.py")
        ('src/raw.py', '../lib/io.py')
        >>> project.relative("/usr/lib/python3/json.py")
        '/usr/lib/python3/json.py'
        """
        if file.startswith(self.root + os.sep):
            file = file[len(self.root) + 1 :]
        elif any(file.startswith(directory + os.sep) for directory in self.path):
            file = os.path.relpath(file, self.root)
        return escaped(file).replace(os.sep, "/")

    @classmethod
    def find(cls, start: str) -> Project:
        r"""Read the nearest project file, from a directory upward.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with open(os.path.join(directory, "servo.toml"), "w") as file:
        ...         _ = file.write('[project]\nname = "flights"\nmodules = ["flights"]')
        ...     os.mkdir(os.path.join(directory, "notebooks"))
        ...     project = Project.find(os.path.join(directory, "notebooks"))
        >>> project.name, project.modules
        ('flights', ('flights',))
        """
        start = os.path.abspath(start)
        directory = start
        while not os.path.isfile(os.path.join(directory, FILE_NAME)):
            parent = os.path.dirname(directory)
            if parent == directory:
                problem = f"no {FILE_NAME} here or in a directory above: create one with\n{_EXAMPLE}"
                raise ProjectError(os.path.join(start, FILE_NAME), [Problem(None, problem)])
            directory = parent
        return cls.read(os.path.join(directory, FILE_NAME))

    @classmethod
    def read(cls, file: str) -> Project:
        """Read a project file.

        >>> Project.read("/nowhere/servo.toml")
        Traceback (most recent call last):
        servo.project.ProjectError: /nowhere/servo.toml: cannot be read: No such file or directory
        """
        file = os.path.abspath(file)
        # Before the file, which may speak of variables.
        for wrong in load_variables(os.path.dirname(file)):
            raise ProjectError(wrong.file, [Problem(wrong.line, wrong.message)])
        return _Reader(file, _load(file)).project()


def nearest_settings() -> Settings:
    """Give the settings of the project that the current directory is in; none if it is in none."""
    try:
        return Project.find(os.getcwd()).settings
    except ProjectError:
        return Settings()


class _File(NamedTuple):
    text: str
    tables: dict[str, object]


class _Reader:
    """Reads the `[project]` table, and collects what is wrong with it."""

    def __init__(self, file: str, content: _File) -> None:
        self._file = file
        self._root = os.path.dirname(file)
        self._content = content
        self._problems: list[Problem] = []

    def project(self) -> Project:
        table = self._content.tables.get("project")
        if not isinstance(table, dict):
            problem = "project is not a table" if table is not None else "the table [project] is missing"
            raise ProjectError(self._file, [Problem(None, f"{problem}: write\n{_EXAMPLE}")])
        for key in table:
            if key not in _KEYS:
                self._refuse(key, f"unknown key {key!r}: [project] has {', '.join(_KEYS)}")
        for key in ("python", "storage"):
            if key in table:
                self._text(table, key, "")
        name = self._text(table, "name", valid_name(os.path.basename(self._root)))
        modules = self._modules(table)
        path = self._path(table)
        settings, wrong = settings_of(self._content.tables, self._root)
        self._problems += [Problem(None, message) for message in wrong]
        if self._problems:
            raise ProjectError(self._file, sorted(self._problems, key=lambda problem: problem.line or 0))
        return Project(self._root, name, modules, path, settings)

    def _text(self, table: dict[str, object], key: str, default: str) -> str:
        value = table.get(key, default)
        if isinstance(value, str):
            return value
        self._refuse(key, f"{key} is {_kind(value)}, it must be a text in quotes")
        return default

    def _texts(self, table: dict[str, object], key: str, example: str) -> list[str]:
        value = table[key]
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        wrong = _kind(value)
        if isinstance(value, list):
            wrong = f"a list with {_kind(next(each for each in value if not isinstance(each, str)))} in it"
        self._refuse(key, f"{key} is {wrong}, it must be a list of texts: {key} = {example}")
        return []

    def _modules(self, table: dict[str, object]) -> tuple[str, ...]:
        if "modules" not in table:
            problem = (
                'modules is missing: name the modules that declare assets, such as modules = ["flights"]'
            )
            self._refuse("[project]", problem)
            return ()
        modules = self._texts(table, "modules", '["flights"]')
        if table["modules"] == []:
            self._refuse("modules", 'modules is empty: name a module, such as modules = ["flights"]')
        for module in modules:
            if not all(part.isidentifier() for part in module.split(".")):
                dotted = re.sub(r"[/\\]+", ".", module.removesuffix(".py").strip("./\\"))
                is_close = all(part.isidentifier() for part in dotted.split("."))
                hint = f": write {dotted!r}" if is_close else ": write its dotted name, such as 'flights.raw'"
                self._refuse("modules", f"{module!r} is not the name of a module{hint}")
        return tuple(dict.fromkeys(modules))

    def _path(self, table: dict[str, object]) -> tuple[str, ...]:
        if "path" not in table:
            source = os.path.join(self._root, "src")
            return (source, self._root) if os.path.isdir(source) else (self._root,)
        directories = []
        for entry in self._texts(table, "path", '["src"]'):
            directory = os.path.normpath(os.path.join(self._root, entry))
            if not os.path.isdir(directory):
                self._refuse("path", f"path has {entry!r}, but {directory} is not a directory")
            directories.append(directory)
        return tuple(dict.fromkeys(directories))

    def _refuse(self, key: str, message: str) -> None:
        self._problems.append(Problem(line_of(key, self._content.text), message))


def line_of(key: str, text: str) -> int | None:
    r"""Find the line of a key of `[project]` in a file; None where it is written in an unusual way.

    >>> line_of("modules", '[project]\nmodules = ["flights"]')
    2
    """
    is_inside = False
    written = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("["):
            is_inside = re.match(r"\s*\[\s*project\s*\]", line) is not None
            if is_inside and key == "[project]":
                return number
        if is_inside and written.match(line):
            return number
    return None


def escaped(file: str) -> str:
    r"""Write bytes of a file's name that are not UTF-8 as escapes.

    >>> print(escaped("café.py"), escaped(os.fsdecode(b"caf\xe9.py")))
    café.py caf\xe9.py
    """
    return file if file.isascii() else os.fsencode(file).decode(errors="backslashreplace")


def valid_name(text: str) -> str:
    """Make a valid name for a project out of any text.

    >>> valid_name("Flug Daten (2024)"), valid_name("—")
    ('flug-daten-2024', 'project')
    """
    name = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")
    return name[:_MAX_NAME].rstrip("-_") or "project"


def _load(file: str) -> _File:
    try:
        with open(file, "rb") as opened:
            text = opened.read().decode().replace("\r\n", "\n")
    except OSError as error:
        raise ProjectError(file, [Problem(None, f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ProjectError(file, [Problem(line, "not UTF-8: save the file as UTF-8")]) from None
    tables = plain_tables(text)
    if tables is not None:
        return _File(text, tables)
    import tomllib  # noqa: PLC0415 - slow to import, and few files need it

    try:
        return _File(text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(file, [_syntax_problem(str(error), text)]) from None


def plain_tables(text: str) -> dict[str, object] | None:
    r"""Read a file as most are written; None if there is anything in it that takes all of TOML to read.

    That is: tables, and texts, lists of texts and booleans, each on a line. JSON writes those the same way.

    >>> plain_tables('# Mine\n[project]\nname = "flights"\nmodules = ["raw", "delays"]  # two\n')
    {'project': {'name': 'flights', 'modules': ['raw', 'delays']}}
    >>> plain_tables("name = 'flights'")
    """
    tables: dict[str, object] = {}
    table = tables
    value: object
    for line in text.split("\n"):
        shown = line.strip(" \t")
        if not shown.replace("\t", " ").isprintable():
            return None
        if not shown or shown.startswith("#"):
            continue
        key, equals, rest = shown.partition("=")
        if shown.startswith("[") and shown.endswith("]"):
            key, table = shown[1:-1], tables
            found, value = True, {}
        else:
            found, value = _plain_value(rest.strip(" \t")) if equals else (False, None)
            key = key.rstrip(" \t")
        is_bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
        if not found or not is_bare or key in table:
            return None
        table[key] = value
        if isinstance(value, dict):
            table = value
    return tables


def _plain_value(text: str) -> tuple[bool, object]:
    """Read what stands behind a key, if it is plain: whether it is, and what it is."""
    import json  # noqa: PLC0415 - not needed to declare anything

    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False, None
    texts = value if isinstance(value, list) else [value]
    is_plain = isinstance(value, bool) or all(isinstance(each, str) for each in texts)
    return is_plain and "\\" not in text and text[end:].lstrip(" \t")[:1] in {"", "#"}, value


def _syntax_problem(message: str, text: str) -> Problem:
    """Take the line out of the parser's message, which has the form `what (at line 3, column 5)`."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if match is None:
        return Problem(None, f"not TOML: {message}")
    what, line, column = match.groups()
    if line is None:
        return Problem(text.count("\n") + 1, f"not TOML: {what} at the end of the file")
    return Problem(int(line), f"not TOML: {what} at column {column}")


def _kind(value: object) -> str:
    """Name the type of a TOML value in the words of TOML."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "a date or time")
