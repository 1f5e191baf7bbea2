"""Says per crate how many planted mistakes no test has noticed: mutants.py OUTCOMES."""

# ruff: noqa: INP001, T201 - a script

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

# The part of viable mutants that may survive.
MOST = 0.10


def rates(outcomes: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Count outcomes by crate. What does not compile is no mutant.

    >>> one = {"scenario": {"Mutant": {"package": "servo-store"}}, "summary": "MissedMutant"}
    >>> rates([{"scenario": "Baseline", "summary": "Success"}, one])["servo-store"]["MissedMutant"]
    1
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        scenario = outcome["scenario"]
        if isinstance(scenario, dict):
            found[scenario["Mutant"]["package"]][outcome["summary"]] += 1
    return dict(found)


def line(crate: str, counted: Counter[str]) -> tuple[str, float]:
    """Write the line of a crate, and give its rate of survival; what hangs was noticed."""
    viable = counted["CaughtMutant"] + counted["MissedMutant"] + counted["Timeout"]
    rate = counted["MissedMutant"] / viable if viable else 0.0
    unviable = counted["Unviable"]
    return f"{crate:20} {viable:5} {counted['MissedMutant']:9} {rate:8.1%} {unviable:9}", rate


def main() -> int:
    """Print a table; the exit code is 1 if too many survive."""
    found = rates(json.loads(Path(sys.argv[1]).read_text("utf-8"))["outcomes"])
    print(f"{'crate':20} {'tried':>5} {'survived':>9} {'rate':>8} {'no build':>9}")
    for crate, counted in sorted(found.items()):
        print(line(crate, counted)[0])
    total: Counter[str] = sum(found.values(), Counter())
    text, rate = line("all", total)
    print(text)
    if rate > MOST:
        print(f"more than {MOST:.0%} were not noticed: {Path(sys.argv[1]).parent / 'missed.txt'}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
