"""Normalized syntax as text: without comments, layout, docstrings and positions.

The text is made for hashing. It leaves out what Python versions add to the tree with nothing in it, so that
the same source has the same text on every version that can read it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    _Out = Callable[[str], None]
    _Read = Callable[[tuple[str, ...]], None]

Syntax = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
"""Syntax that has a meaning of its own."""

_IGNORED: Final = frozenset({"ctx", "kind", "type_comment"})
_NONE: Final[frozenset[str]] = frozenset()
_NAMED: Final = frozenset({"decorator_list"})
_UNNAMED: Final = frozenset({"decorator_list", "name"})
_IDLE: Final = (ast.Pass, ast.Expr)
_plans: Final[dict[type[ast.AST], tuple[str, tuple[tuple[str, str], ...]]]] = {}


class Meaning(NamedTuple):
    """The text of a piece of syntax, and the names it mentions.

    `reads` has every name, with the attributes taken from it: `("helpers", "clean")` for `helpers.clean`.
    """

    text: str
    reads: frozenset[tuple[str, ...]]


def meaning(node: Syntax) -> Meaning:
    """Give the meaning of a function or class, without its decorators; functions also without their name.

    >>> def of(source: str) -> Meaning:
    ...     return meaning(ast.parse(source).body[0])
    >>> of("def f(x): return x+limits.top") == of("def g( x ): 'Doc.'; return (x + limits.top)  # why")
    True
    >>> sorted(of("def f(x): return x+limits.top").reads)
    [('limits', 'top'), ('x',)]
    """
    pieces: list[str] = []
    reads: set[tuple[str, ...]] = set()
    ignored = _NAMED if isinstance(node, ast.ClassDef) else _UNNAMED
    _write(node, pieces.append, reads.add, ignored)
    return Meaning("".join(pieces), frozenset(reads))


def _write(node: ast.AST, out: _Out, read: _Read, ignored: frozenset[str] = _NONE) -> None:
    kind = type(node)
    special = _SPECIAL.get(kind)
    if special is not None:
        special(node, out, read)
        return
    name, fields = _plans.get(kind) or _plan(kind)
    out(name)
    for field, label in fields:
        value = getattr(node, field, None)
        if (not value and (value is None or value == [])) or field in ignored:
            continue
        out(label)
        if type(value) is list:
            _write_list(value, out, read)
        elif isinstance(value, ast.AST):
            _write(value, out, read)
        else:
            out(repr(value))
    if fields:
        out(")")


def _write_list(elements: list[object], out: _Out, read: _Read) -> None:
    for element in elements:
        if isinstance(element, _IDLE) and _does_nothing(element):
            continue
        if isinstance(element, ast.AST):
            _write(element, out, read)
            out(",")
        else:
            out(f"{element!r},")
    out("]")


def _does_nothing(node: ast.Pass | ast.Expr) -> bool:
    """Say whether it is `pass`, or a constant that stands alone as docstrings do."""
    return isinstance(node, ast.Pass) or isinstance(node.value, ast.Constant)


def _write_name(node: ast.Name, out: _Out, read: _Read) -> None:
    out("$" + node.id)
    read((node.id,))


def _write_constant(node: ast.Constant, out: _Out, _read: _Read) -> None:
    value = node.value
    # Python refuses to write integers of thousands of digits in decimal.
    out(hex(value) if type(value) is int and value.bit_length() > 64 else repr(value))


def _write_arg(node: ast.arg, out: _Out, read: _Read) -> None:
    out(node.arg)
    if node.annotation is not None:
        out(":")
        _write(node.annotation, out, read)


def _write_attribute(node: ast.Attribute, out: _Out, read: _Read) -> None:
    attributes = [node.attr]
    base = node.value
    while isinstance(base, ast.Attribute):
        attributes.append(base.attr)
        base = base.value
    attributes.reverse()
    if isinstance(base, ast.Name):
        out("$" + base.id)
        read((base.id, *attributes))
    else:
        _write(base, out, read)
    out("." + ".".join(attributes))


def _write_joined(node: ast.JoinedStr, out: _Out, read: _Read) -> None:
    """Write an f-string. Where its texts are cut into constants is up to the version of Python."""
    out("f(")
    text = ""
    for value in node.values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
        else:
            if text:
                out(repr(text))
            text = ""
            _write(value, out, read)
    if text:
        out(repr(text))
    out(")")


_SPECIAL: Final[dict[type[ast.AST], Callable[..., None]]] = {
    ast.Name: _write_name,
    ast.Constant: _write_constant,
    ast.arg: _write_arg,
    ast.Attribute: _write_attribute,
    ast.JoinedStr: _write_joined,
}


def _plan(kind: type[ast.AST]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Say how a kind of node is written: its name, and its fields with their labels."""
    fields = tuple((field, f" {field}=") for field in kind._fields if field not in _IGNORED)
    return _plans.setdefault(kind, (kind.__name__ + "(" if fields else kind.__name__, fields))
