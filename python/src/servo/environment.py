r"""The environment that a project runs in: its variables, and what `servo.toml` says for it.

    [resources.warehouse]           # values of the fields of a resource
    url = "duckdb://local.db"
    token = { env = "TOKEN" }       # from a variable, or from a file: { file = "token.txt" }

    [env.prod.resources.warehouse]  # in their place where SERVO_ENV is prod
    url = "postgres://warehouse"

Variables come from the process, then from `.env.prod`, then from `.env`, both beside `servo.toml`.
`SERVO_RESOURCES_WAREHOUSE_URL` counts more than any file.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final, NamedTuple

NAME: Final = "SERVO_ENV"
_LINE: Final = r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)"
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class FileProblem(NamedTuple):
    """A line of a file that cannot be read."""

    file: str
    line: int | None
    message: str


class Settings(NamedTuple):
    """Values that the files of a project give its resources, in the environment that it runs in."""

    root: str = "."
    """The directory of the project, to which files are relative."""
    resources: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - never changed
    """Values by field, by name of the resource."""

    def value_of(self, resource: str, field: str) -> tuple[bool, object]:
        """Give what is set for a field of a resource, and whether anything is.

        Raises:
            LookupError: It is said to be in a variable or a file that is not there.

        >>> os.environ["SERVO_RESOURCES_DB_PORT"] = "5432"
        >>> Settings(resources={"db": {"port": 1}}).value_of("db", "port")
        (True, '5432')
        >>> del os.environ["SERVO_RESOURCES_DB_PORT"]
        """
        variable = variable_of(resource, field)
        if variable in os.environ:
            return True, os.environ[variable]
        values = self.resources.get(resource, {})
        if field not in values:
            return False, None
        return True, self._found(values[field])

    def _found(self, value: object) -> object:
        """Read a value that is somewhere else."""
        if not isinstance(value, dict) or len(value) != 1:
            return value
        ((kind, place),) = value.items()
        if kind == "env":
            if place not in os.environ:
                raise LookupError(f"is in the environment variable {place}, which is not set")
            return os.environ[place]
        if kind == "file":
            path = os.path.join(self.root, place)
            try:
                with open(path, encoding="utf-8") as file:
                    return file.read().rstrip("\r\n")
            except OSError as error:
                raise LookupError(f"is in the file {path}, which cannot be read: {error.strerror}") from None
        return value


def variable_of(resource: str, field: str) -> str:
    """Name the environment variable that sets a field of a resource.

    >>> variable_of("warehouse", "url")
    'SERVO_RESOURCES_WAREHOUSE_URL'
    """
    return re.sub(r"[^A-Z0-9]", "_", f"SERVO_RESOURCES_{resource}_{field}".upper())


def settings_of(tables: dict[str, object], root: str) -> tuple[Settings, list[str]]:
    """Read what a project file says of resources, and what is wrong with it.

    >>> settings_of({"resources": {"db": {"port": 1}}, "env": {"prod": {"resources": {}}}}, "/me")
    (Settings(root='/me', resources={'db': {'port': 1}}), [])
    >>> settings_of({"resources": {"db": 1}}, "/me")[1]
    ['[resources] has db = 1: write a table [resources.db]']
    """
    problems: list[str] = []
    found = _tables(tables.get("resources", {}), "resources", problems)
    environments = _tables(tables.get("env", {}), "env", problems)
    for name, each in environments.items():
        own = _tables(each.get("resources", {}), f"env.{name}.resources", problems)
        if name == os.environ.get(NAME):
            found = {key: {**found.get(key, {}), **own.get(key, {})} for key in {**found, **own}}
    chosen = os.environ.get(NAME)
    if chosen and environments and chosen not in environments:
        problems.append(
            f"{NAME} is {chosen}, and there is no [env.{chosen}]: there is {', '.join(environments)}"
        )
    return Settings(root, found), problems


def _tables(value: object, name: str, problems: list[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        problems.append(f"{name} is no table: write [{name}.…]")
        return {}
    for key, each in value.items():
        if not isinstance(each, dict):
            problems.append(f"[{name}] has {key} = {each!r}: write a table [{name}.{key}]")
    return {key: each for key, each in value.items() if isinstance(each, dict)}


def load_variables(root: str) -> list[FileProblem]:
    """Set the variables of `.env` files that are not set yet, and give what is wrong with the files."""
    chosen = os.environ.get(NAME)
    problems: list[FileProblem] = []
    for name in ([f".env.{chosen}"] if chosen else []) + [".env"]:
        path = os.path.join(root, name)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            problems.append(FileProblem(path, None, f"cannot be read: {error}"))
            continue
        values, wrong = variables(text)
        problems += [FileProblem(path, line, message) for line, message in wrong]
        for variable, value in values.items():
            os.environ.setdefault(variable, value)
    return problems


def variables(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    r"""Read the lines `NAME=value` of a file, and what is wrong with it.

    >>> variables('# mine\nexport A=1\nB="two words"  # so\nC=\'$x\'\nD=a b # c')
    ({'A': '1', 'B': 'two words', 'C': '$x', 'D': 'a b'}, [])
    >>> variables("what")
    ({}, [(1, "'what' is no line NAME=value")])
    """
    found: dict[str, str] = {}
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        shown = line.strip()
        if not shown or shown.startswith("#"):
            continue
        match = re.fullmatch(_LINE, shown)
        value = None if match is None else _value(match[2])
        if match is None or value is None:
            # The value may be a secret, so it is not shown.
            name = shown.partition("=")[0]
            wrong.append(
                (number, f"{name!r} is no line NAME=value" if match is None else f"{name} has no end quote")
            )
            continue
        found[match[1]] = value
    return found, wrong


def _value(text: str) -> str | None:
    if text[:1] == "'":
        end = text.find("'", 1)
        return None if end < 0 else text[1:end]
    if text[:1] == '"':
        match = re.match(r'"((?:[^"\\]|\\.)*)"', text)
        if match is None:
            return None
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match[1])
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()
