"""Finding the syntax of functions and classes in their files.

A file is read once. Of a function only its own lines are parsed, since that is many times faster than to
parse the file. The lines end where the indentation does; should that be inside of a string or of brackets,
then the lines are no valid syntax, and the whole file is parsed after all.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from servo.code_version.syntax import Meaning, Syntax, meaning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

_DEF: Final = re.compile(r"([ \t\f]*)(?:async[ \t]+)?def[ \t]+(\w+)")
_CLASS: Final = re.compile(r"([ \t\f]*)class[ \t]+(\w+)")
_LAMBDA: Final = "<lambda>"


class Sources:
    """The source files of functions, each read when it is first asked for.

    >>> import textwrap
    >>> found = Sources().function(textwrap.dedent.__code__)
    >>> ("re", "sub") in found.reads or ("text",) in found.reads
    True
    >>> Sources().function(eval("lambda: 1").__code__) is None
    True
    """

    def __init__(self, imported: Mapping[str, bytes] | None = None) -> None:
        """Take files as they were when they were imported, by name; others are read."""
        self._imported = dict(imported or {})
        self._files: dict[str, _File | None] = {}
        # The code is kept so that its id stays its own.
        self._functions: dict[int, tuple[CodeType, Meaning | None]] = {}

    def function(self, code: CodeType) -> Meaning | None:
        """Give the meaning of a function or lambda; None where its source cannot be found."""
        known = self._functions.get(id(code))
        if known is not None:
            return known[1]
        file = self._file(code.co_filename)
        found = None if file is None else _meaning(file.function(code))
        self._functions[id(code)] = code, found
        return found

    def class_(self, filename: str, qualname: str) -> Meaning | None:
        """Give the meaning of a class; None where its source cannot be found.

        >>> Sources().class_(__file__, "Sources").text[:21]
        "ClassDef( name='Sourc"
        """
        file = self._file(filename)
        return None if file is None else _meaning(file.class_(qualname))

    def _file(self, filename: str) -> _File | None:
        if filename not in self._files:
            data = self._imported.pop(filename, None)
            self._files[filename] = _read(filename) if data is None else _decoded(data)
        return self._files[filename]


class _File:
    """The lines of a source file, and its whole syntax if that had to be parsed."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._index: _Index | None = None

    def function(self, code: CodeType) -> Syntax | None:
        name = code.co_name
        if name == _LAMBDA:
            return self._indexed().lambda_(code)
        start = self._def_line(code.co_firstlineno - 1, name)
        if start is None:
            return None
        node = self._parse_block(start, _DEF)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_of(node, code):
            return node
        return self._indexed().functions.get((code.co_firstlineno, name))

    def class_(self, qualname: str) -> Syntax | None:
        name = qualname.rpartition(".")[2]
        starts = [
            number
            for number, line in enumerate(self._lines)
            if name in line and (match := _CLASS.match(line)) and match[2] == name
        ]
        if len(starts) == 1:
            node = self._parse_block(starts[0], _CLASS)
            if isinstance(node, ast.ClassDef):
                return node
        return self._indexed().classes.get(qualname)

    def _def_line(self, first: int, name: str) -> int | None:
        """Find the `def` from the line of the first decorator on."""
        if not 0 <= first < len(self._lines):
            return None
        is_decorated = self._lines[first].lstrip().startswith("@")
        for number in range(first, len(self._lines) if is_decorated else first + 1):
            line = self._lines[number]
            if name in line and (match := _DEF.match(line)) and match[2] == name:
                return number
        return None

    def _parse_block(self, start: int, opening: re.Pattern[str]) -> ast.stmt | None:
        match = opening.match(self._lines[start])
        indent = match[1] if match else ""
        block = "\n".join(self._lines[start : self._block_end(start, indent)])
        source = f"if 1:\n{block}" if indent else block
        try:
            # As `ast.parse` does, without its preparations: they count for thousands of functions.
            tree = compile(source, "<source>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            statement: ast.stmt = tree.body[0]  # type: ignore[attr-defined]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return statement.body[0] if isinstance(statement, ast.If) else statement

    def _block_end(self, start: int, indent: str) -> int:
        """Find the first line that is indented no deeper than the start of the block."""
        lines = self._lines
        depth = len(indent)
        for number in range(start + 1, len(lines)):
            line = lines[number]
            if line[:depth] == indent and line[depth : depth + 1] in {" ", "\t"}:
                continue
            rest = line.lstrip()
            if rest and rest[0] not in "#)]}":
                return number
        return len(lines)

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = _Index("\n".join(self._lines))
        return self._index


class _Index:
    """Every function, lambda and class of a file."""

    def __init__(self, text: str) -> None:
        self.functions: dict[tuple[int, str], Syntax] = {}
        self.classes: dict[str, Syntax] = {}
        self._lambdas: dict[int, list[ast.Lambda]] = {}
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        # Breadth first, so that of two classes with the same name the later one counts, as it does in Python.
        pending: list[tuple[ast.AST, str]] = [(tree, "")]
        for node, prefix in pending:
            inner = prefix
            if isinstance(node, ast.Lambda):
                self._lambdas.setdefault(node.lineno, []).append(node)
                inner = f"{prefix}{_LAMBDA}.<locals>."
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self.functions[first, node.name] = node
                inner = f"{prefix}{node.name}.<locals>."
            elif isinstance(node, ast.ClassDef):
                self.classes[prefix + node.name] = node
                inner = f"{prefix}{node.name}."
            pending.extend((child, inner) for child in ast.iter_child_nodes(node))

    def lambda_(self, code: CodeType) -> Syntax | None:
        """Find a lambda; of several on a line, the one whose body is where the instructions come from."""
        candidates = self._lambdas.get(code.co_firstlineno, [])
        if len(candidates) == 1:
            return candidates[0]
        places = {
            (line, column, end_line, end_column) for line, end_line, column, end_column in code.co_positions()
        }
        bodies = [(node, node.body) for node in candidates]
        found = [
            node
            for node, body in bodies
            if (body.lineno, body.col_offset, body.end_lineno, body.end_col_offset) in places
        ]
        # The body of a lambda in a lambda has instructions of its own, in a code object of its own.
        return found[0] if len(found) == 1 else None


def _meaning(node: Syntax | None) -> Meaning | None:
    if node is None:
        return None
    try:
        return meaning(node)
    except RecursionError:
        return None


def _is_of(node: ast.FunctionDef | ast.AsyncFunctionDef, code: CodeType) -> bool:
    """Say whether the syntax has the parameters of the code: the file may be newer than what was imported."""
    args = node.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    if len(names) != code.co_argcount + code.co_kwonlyargcount:
        return False
    # In a class, Python adds the name of the class to names that start with two underscores.
    return all(map(str.endswith, code.co_varnames, names))


def _read(filename: str) -> _File | None:
    if filename.startswith("<"):
        return None
    try:
        with open(filename, "rb") as file:  # noqa: PTH123 - the name is as Python wrote it
            data = file.read()
    except (OSError, ValueError):
        return None
    return _decoded(data)


def _decoded(data: bytes) -> _File | None:
    try:
        text = data.decode(_encoding(data))
    except (ValueError, LookupError, SyntaxError):
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _File(text)


def _encoding(data: bytes) -> str:
    if b"coding" not in data[:400]:
        return "utf-8-sig"
    import io  # noqa: PLC0415 - slow, and seldom needed
    import tokenize  # noqa: PLC0415

    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
