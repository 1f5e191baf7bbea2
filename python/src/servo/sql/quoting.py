"""Names, texts and paths as they are written in SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def identifier(name: str) -> str:
    """Write a name so that it is one, whatever is in it.

    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def shown(name: str) -> str:
    """Write a name as people do, in quotes only where it needs them.

    >>> shown("flights"), shown("new-flights")
    ('flights', '"new-flights"')
    """
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else identifier(name)


def text(value: str) -> str:
    """Write a text.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def pattern(path: str) -> str:
    """Keep DuckDB from reading a path as a pattern.

    >>> pattern("/lake/date=*/data.parquet")
    '/lake/date=[*]/data.parquet'
    """
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def files(paths: Iterable[str]) -> str:
    """Write a list of paths for a function that reads files.

    >>> files(["/lake/a.parquet"])
    "['/lake/a.parquet']"
    """
    return "[" + ", ".join(text(pattern(path)) for path in paths) + "]"
