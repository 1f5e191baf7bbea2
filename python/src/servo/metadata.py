"""Metadata that is shown as what it is: Markdown, tables, links and pictures.

Everything else that `ctx.metadata`, `Output` and `Materialization` take is shown as JSON.

>>> md("**3** flights").to_json()
{'$servo': 'md', 'text': '**3** flights'}
>>> table([{"carrier": "AA", "flights": 3}]).to_json()
{'$servo': 'table', 'columns': ['carrier', 'flights'], 'rows': [['AA', 3]], 'row_count': 1}
>>> url("https://example.org/report", "the report").to_json()
{'$servo': 'url', 'url': 'https://example.org/report', 'text': 'the report'}
"""

from __future__ import annotations

import os
from typing import Any, Final

from servo.arguments import text as check_text
from servo.arguments import wrong
from servo.frozen import Frozen

KIND: Final = "$servo"
"""The key by which values that are shown in a way of their own are known."""
_MOST_ROWS: Final = 100
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_SMALL: Final = 32 * 1024
"""Pictures of this size fit into metadata where there is no directory to put them."""


class Shown(Frozen):
    """A value of metadata that is shown in a way of its own."""

    __slots__ = ("parts",)
    parts: dict[str, object]

    def __init__(self, kind: str, parts: dict[str, object]) -> None:
        """Take the kind, and what is to be known."""
        self._set(parts={KIND: kind, **parts})

    def to_json(self) -> dict[str, object]:
        """Give it as JSON has it."""
        return dict(self.parts)

    def __hash__(self) -> int:
        return id(self)


class Plot(Frozen):
    """A picture, kept beside the data that it is of."""

    __slots__ = ("data", "media_type")
    data: bytes
    media_type: str
    """`image/png` or `image/svg+xml`."""

    def __init__(self, data: bytes, media_type: str) -> None:
        """Take the bytes and what they are."""
        self._set(data=data, media_type=media_type)

    def file_name(self, name: str) -> str:
        """Name the file for it, by the name of the metadata.

        >>> Plot(b"", "image/png").file_name("delays by hour")
        '_plot-delays-by-hour.png'
        """
        safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:100]
        return f"_plot-{safe}.{'svg' if self.media_type == 'image/svg+xml' else 'png'}"

    def in_file(self, file: str) -> dict[str, object]:
        """Give it as JSON has it, with the name of the file that it is in."""
        return {KIND: "image", "media_type": self.media_type, "byte_size": len(self.data), "file": file}

    def to_json(self) -> dict[str, object]:
        """Give it as JSON has it, with the picture itself if it is small."""
        found: dict[str, object] = {KIND: "image", "media_type": self.media_type, "byte_size": len(self.data)}
        if len(self.data) <= _SMALL:
            import base64  # noqa: PLC0415 - rarely needed

            found["base64"] = base64.b64encode(self.data).decode()
        return found

    def __repr__(self) -> str:
        return f"Plot({self.media_type}, {len(self.data)} bytes)"


def md(text: str) -> Shown:
    """Show a text as Markdown."""
    return Shown("md", {"text": check_text("md(text)", text, "**3** flights")})


def url(address: str, text: str | None = None) -> Shown:
    """Show a link, under a text if one is given."""
    parts: dict[str, object] = {"url": check_text("url(address)", address, "https://example.org")}
    if text is not None:
        parts["text"] = check_text("url(text)", text, "the report")
    return Shown("url", parts)


def table(rows: object) -> Shown:
    """Show a table: a dataframe of any library, or a list of dicts; of long ones the first 100 rows."""
    from servo.runner.json_values import json_value  # noqa: PLC0415 - not needed to declare

    if isinstance(rows, list | tuple) and all(isinstance(row, dict) for row in rows):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        count, listed = len(rows), [[row.get(name) for name in columns] for row in rows[:_MOST_ROWS]]
    else:
        from servo.storage.converting import to_arrow  # noqa: PLC0415 - as above
        from servo.storage.errors import UnsupportedType  # noqa: PLC0415 - as above

        try:
            found = to_arrow(rows)
        except UnsupportedType:
            raise wrong("table(rows)", rows, "a dataframe or a list of dicts") from None
        columns, count = list(found.column_names), found.num_rows
        first = found.slice(0, min(_MOST_ROWS, count))
        listed = [
            list(row) for row in zip(*(first.column(name).to_pylist() for name in columns), strict=True)
        ]
    return Shown("table", {"columns": columns, "rows": json_value(listed), "row_count": count})


def plot(figure: Any) -> Plot:  # noqa: ANN401 - of any library
    """Show a picture: a figure of matplotlib, an image of Pillow, the bytes or the path of a PNG or an SVG.

    >>> plot("<svg xmlns='http://www.w3.org/2000/svg'/>")
    Plot(image/svg+xml, 41 bytes)
    """
    if isinstance(figure, str) and figure.lstrip().startswith("<"):
        return Plot(figure.encode(), "image/svg+xml")
    if isinstance(figure, str | os.PathLike):
        with open(figure, "rb") as file:
            return plot(file.read())
    if isinstance(figure, bytes):
        if figure.startswith(_PNG):
            return Plot(figure, "image/png")
        if figure.lstrip().startswith((b"<svg", b"<?xml")):
            return Plot(figure, "image/svg+xml")
    # Axes of matplotlib and seaborn know their figure.
    figure = getattr(figure, "figure", figure)
    for method in ("savefig", "save"):
        if hasattr(figure, method):
            import io  # noqa: PLC0415 - rarely needed

            written = io.BytesIO()
            getattr(figure, method)(written, format="png")
            return Plot(written.getvalue(), "image/png")
    raise wrong(
        "plot(figure)", figure, "a figure of matplotlib, an image, or the bytes or path of a PNG or SVG"
    )
