"""Prints what partitions are, for Servo to compare: JSON objects in lines, the first about the oracle itself.

python -m oracle.partitions_oracle zones          the names of the zones there are cases for
python -m oracle.partitions_oracle cases 3 8      the cases of the fourth of eight parts of the zones
python -m oracle.partitions_oracle lines < case   the lines that the digest of a case is of
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from oracle.cases import lines, of_names, of_zone
from oracle.clock import changing, iana_version, names

if TYPE_CHECKING:
    from collections.abc import Iterator


def cases(part: int, parts: int) -> Iterator[dict[str, Any]]:
    """The cases of every zone whose clocks change, of one part of the zones."""
    for number, alike in enumerate(names()):
        if number % parts != part:
            continue
        other = names()[(number + 100) % len(names())][0]
        for same in changing(alike):
            yield from of_names(same)
            yield from of_zone(same[0], other)


def say(line: str) -> None:
    """Prints a line, in UTF-8 wherever it runs."""
    sys.stdout.buffer.write(f"{line}\n".encode())


def main(arguments: list[str]) -> None:
    """Answers the command line."""
    say(json.dumps({"iana_version": iana_version()}))
    match arguments:
        case ["zones"]:
            say(json.dumps([zone for alike in names() for same in changing(alike) for zone in same]))
        case ["cases", part, parts]:
            for case in cases(int(part), int(parts)):
                say(json.dumps(case, separators=(",", ":")))
        case ["lines"]:
            for line in lines(json.load(sys.stdin)):
                say(line)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
