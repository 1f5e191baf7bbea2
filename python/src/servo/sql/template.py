"""The text of a query, with references to assets and values in double braces.

>>> found = read("select * from {{ raw.flights }} where day = {{ partition }} -- {{ not this }}")
>>> found.query
'select * from "raw.flights" where day = $partition -- {{ not this }}'
>>> found.assets, found.values
({'raw.flights': 'raw/flights'}, {'partition': ('partition',)})

Braces in comments mean nothing. Values are bound when the query is run and never become part of its text, so
braces inside of quotes are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<quoted>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<reference>\{\{(?P<inside>.*?)\}\})
    | (?P<open>\{\{ | ['"])
    | (?P<word>\w+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens of a query. A comment `/*` is only begun: it may have others inside."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HINT: Final = (
    "write {{ namespace.name }} for an asset, {{ partition }} or {{ partition.dimension }} for the "
    "partition, or {{ config.name }} for a value of the configuration"
)


class TemplateError(ValueError):
    """A query cannot be read: in which of its lines, and why."""

    def __init__(self, line: int, problem: str) -> None:
        """Remember line and problem."""
        self.line = line
        self.problem = problem
        super().__init__(f"line {line} of the query: {problem}")


class Template(Frozen):
    """A query that was read."""

    __slots__ = ("assets", "normalized", "query", "values")
    query: str
    """As DuckDB takes it: assets as quoted names, values as named parameters."""
    assets: dict[str, str | None]
    """By name in the query: the canonical key, or None for a name without a namespace."""
    values: dict[str, tuple[str, ...]]
    """By name of the parameter: what was written, such as `("partition", "date")`."""
    normalized: str
    """Without comments, and with single spaces: what the query means."""

    def __init__(
        self,
        query: str,
        assets: Mapping[str, str | None],
        values: Mapping[str, tuple[str, ...]],
        normalized: str,
    ) -> None:
        """Take what was read."""
        self._set(query=query, assets=dict(assets), values=dict(values), normalized=normalized)

    def __hash__(self) -> int:
        return hash(self.query)


def read(text: str) -> Template:
    """Read a query.

    >>> read("select {{ flights }}").assets
    {'flights': None}
    >>> read("select * from {{ raw.flights")
    Traceback (most recent call last):
    servo.sql.template.TemplateError: line 1 of the query: {{ is not closed with }}
    """
    query: list[str] = []
    normalized: list[str] = []
    assets: dict[str, str | None] = {}
    values: dict[str, tuple[str, ...]] = {}
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None, "the last alternative is any character"  # noqa: S101 - an invariant
        kind, found = match.lastgroup or "", match.group()
        at = match.end()
        line = text.count("\n", 0, match.start()) + 1
        if match["quoted"] is not None:
            _refuse_inside(found, line)
        elif match["reference"] is not None:
            path = _path(match["inside"], line)
            found = _written(path, assets, values)
        elif kind == "open":
            problem = "{{ is not closed with }}" if found == "{{" else f"the quote {found} is not closed"
            raise TemplateError(line, problem)
        elif kind == "block":
            at = end_of_comment(text, match.start())
            if at < 0:
                raise TemplateError(line, "the comment /* is not closed with */")
            found = text[match.start() : at]
        query.append(found)
        if kind not in {"space", "line", "block"}:
            normalized.append(found)
        elif normalized and normalized[-1] != " ":
            normalized.append(" ")
    meaning = "".join(normalized).rstrip("; ")
    if not meaning:
        raise TemplateError(1, "it is empty")
    return Template("".join(query).rstrip().rstrip(";"), assets, values, meaning)


def _path(inside: str, line: int) -> tuple[str, ...]:
    path = tuple(part.strip() for part in inside.strip().replace("/", ".").split("."))
    if len(path) > 2 or not all(_NAME.fullmatch(part) for part in path) or path == ("config",):
        raise TemplateError(line, f"{{{{ {inside.strip()} }}}} names nothing: {_HINT}")
    return path


def _written(path: tuple[str, ...], assets: dict[str, str | None], values: dict[str, tuple[str, ...]]) -> str:
    """Write a reference as DuckDB takes it, and remember it."""
    if path[0] in {"partition", "config"}:
        name = re.sub(r"\W", "_", "_".join(path))
        values[name] = path
        return f"${name}"
    name = ".".join(path)
    assets[name] = "/".join(path) if len(path) == 2 else None
    return f'"{name}"'


def _refuse_inside(found: str, line: int) -> None:
    inside = re.search(r"\{\{\s*([\w./-]+)\s*\}\}", found)
    if inside:
        raise TemplateError(
            line, f"{inside[0]} is inside of quotes: write it without them, since it is a value and no text"
        )


def end_of_comment(text: str, start: int) -> int:
    """Find the end of a comment, in which there may be others; -1 if it has none."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1
