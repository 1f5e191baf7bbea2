"""The names that a query mentions, so that only these become views.

>>> [name.parts for name in names('select r.state from runs r join raw."new-flights" f -- from tasks')]
[('r', 'state'), ('runs',), ('r',), ('raw', 'new-flights'), ('f',)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from servo.sql.template import TOKEN, end_of_comment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORDS: Final = frozenset(
    {"select", "from", "join", "where", "and", "or", "on", "as", "group", "order", "by"}
)
"""Words that stand between names and are none; the list is for speed and need not have them all."""


class Name(NamedTuple):
    """A name with its parts, and where it stands."""

    parts: tuple[str, ...]
    start: int
    end: int


class _Token(NamedTuple):
    start: int
    end: int
    name: str | None
    """If it is one part of a name."""
    is_dot: bool


def names(sql: str) -> list[Name]:
    """Find everything in a query that could be a name, with the parts that dots join."""
    found: list[Name] = []
    parts: list[str] = []
    start = end = 0
    is_joined = False
    for token in _tokens(sql):
        if token.name is None:
            is_joined = token.is_dot and bool(parts)
            if not is_joined and parts:
                found.append(Name(tuple(parts), start, end))
                parts = []
            continue
        if parts and not is_joined:
            found.append(Name(tuple(parts), start, end))
            parts = []
        if not parts:
            start = token.start
        parts.append(token.name)
        end, is_joined = token.end, False
    if parts:
        found.append(Name(tuple(parts), start, end))
    return [name for name in found if len(name.parts) > 1 or name.parts[0].lower() not in _WORDS]


def trimmed(sql: str) -> str:
    """Give a query without what may stand after it: a semicolon, and comments.

    >>> trimmed("select 1; -- done")
    'select 1'
    """
    end = 0
    for token in _tokens(sql):
        if sql[token.start : token.end] != ";":
            end = token.end
    return sql[:end]


def near(name: str, there: Iterable[str]) -> list[str]:
    """Find what somebody may have meant.

    >>> near("flights", ["raw.flights", "runs"]), near("rusn", ["raw.flights", "runs"])
    (['raw.flights'], ['runs'])
    """
    import difflib  # noqa: PLC0415 - only needed to explain a mistake

    wanted = name.lower()
    known = {each.lower(): each for each in there}
    same = [each for low, each in known.items() if low.rpartition(".")[2] == wanted.rpartition(".")[2]]
    return (same or [known[low] for low in difflib.get_close_matches(wanted, known, n=3)])[:3]


def _tokens(sql: str) -> Iterator[_Token]:
    """Give what a query is made of, without spaces and comments."""
    at = 0
    while at < len(sql):
        match = TOKEN.match(sql, at)
        assert match is not None, "the last alternative is any character"  # noqa: S101 - an invariant
        start, at = at, match.end()
        if match.lastgroup == "block":
            at = end_of_comment(sql, start)
            if at < 0:
                return
        elif match.lastgroup not in {"space", "line"}:
            yield _Token(
                start, at, _name(match.group(), is_word=match["word"] is not None), sql[start] == "."
            )


def _name(found: str, *, is_word: bool) -> str | None:
    if is_word:
        return None if found[0].isdecimal() else found
    return found[1:-1].replace('""', '"') if len(found) > 1 and found[0] == '"' else None
