"""Pictures of the documentation: readable by people who do not see them, on light pages and on dark ones."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = sorted(DOCS.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
PAGES = ("automation", "backfills", "partition-lifecycle", "staleness")
# The width of a letter, roughly: of 14 pixels semibold, of 12, of 11.5 monospaced.
LETTER = {"head": 8.5, "note": 6.7, "mono": 6.95}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_picture_and_says_what_is_on_it(name: str) -> None:
    found = re.search(rf"!\[([^\]]+)\]\({name}\.svg\)", (DOCS / f"{name}.md").read_text("utf-8"))
    assert found is not None
    assert len(found[1].split()) > 5


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_a_picture_has_a_title_and_a_description(picture: Path) -> None:
    root = ET.fromstring(picture.read_text("utf-8"))  # noqa: S314 - our own
    assert root.get("role") == "img"
    for name in ("title", "desc"):
        assert root.findtext(f"{SVG}{name}")
    assert "href" not in picture.read_text("utf-8"), "it loads nothing"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.stem)
def test_texts_of_a_picture_are_within_it(picture: Path) -> None:
    root = ET.fromstring(picture.read_text("utf-8"))  # noqa: S314 - our own
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    for text in root.iter(f"{SVG}text"):
        long = len(text.text or "") * LETTER[text.get("class", "head")]
        start = {"middle": -long / 2, "end": -long}.get(text.get("text-anchor", "start"), 0.0)
        left = float(text.get("x", 0)) + start
        assert left >= 0, text.text
        assert left + long <= width, text.text
        assert 0 < float(text.get("y", 0)) <= height, text.text


@pytest.mark.parametrize("name", PAGES)
def test_a_picture_has_colours_for_dark_pages(name: str) -> None:
    style = (DOCS / f"{name}.svg").read_text("utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)", 1)
    classes = set(re.findall(r"^ +\.([a-z]+)\b", light, re.MULTILINE))
    coloured = set(re.findall(r"\.([a-z]+)\b", dark.split("</style>", 1)[0]))
    assert classes == coloured
