"""`python -m chaos.check DIR`: checks every workspace below a directory."""
# ruff: noqa: T201  (a program: it prints)

from __future__ import annotations

import sys
from pathlib import Path

from chaos.check.workspace import check


def main() -> int:
    """Print what is wrong."""
    bad = 0
    for ledger in sorted(Path(sys.argv[1]).glob("tenant=*/workspace=*/ledger")):
        findings, _, _ = check(ledger.parent)
        for finding in findings.found:
            print(f"{finding.kind}: {finding.text}")
        print(f"{ledger.parent.name}: {findings.counts}")
        bad += len(findings.found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
