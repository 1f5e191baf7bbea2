"""Findings about a workspace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["lost", "doubled", "left behind", "wrong"]
KINDS: tuple[Kind, ...] = ("lost", "doubled", "left behind", "wrong")


@dataclass(frozen=True)
class Finding:
    """One thing that should not be."""

    kind: Kind
    text: str


@dataclass
class Findings:
    """All that was found, and what was looked at."""

    found: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def lost(self, text: str) -> None:
        """Note something that should be there."""
        self.found.append(Finding("lost", text))

    def doubled(self, text: str) -> None:
        """Note something that is there, or was done, more than once."""
        self.found.append(Finding("doubled", text))

    def left(self, text: str) -> None:
        """Note something that nobody needs and nobody has removed."""
        self.found.append(Finding("left behind", text))

    def wrong(self, text: str) -> None:
        """Note something that contradicts something else."""
        self.found.append(Finding("wrong", text))

    def by_kind(self) -> dict[Kind, int]:
        """Count what was found."""
        counted = Counter(finding.kind for finding in self.found)
        return {kind: counted[kind] for kind in KINDS}
