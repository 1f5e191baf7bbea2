"""Docstrings say what a thing is, or when to use it, in a declarative sentence."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("python", "chaos", "scripts", "examples", "crates/servo-cli/templates")


def test_no_docstring_begins_with_what() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for place in PLACES
        for path in sorted((ROOT / place).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.match(r'\s*"""What', line)
    ]
    assert found == []
