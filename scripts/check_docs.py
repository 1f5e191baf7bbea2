# noqa: INP001 - a script
"""Hold the docs to their rules: lines of at most 120, links that lead somewhere, every ADR in the index."""

from __future__ import annotations

import re
import sys
from pathlib import Path

WIDTH = 120
PAGES = ("*.md", "docs/**/*.md", "python/README.md", "examples/**/*.md", "crates/servo-cli/templates/*.md")
ADRS = Path("docs/adr")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INDEXED = re.compile(r"^- \[(\d{3}) ([^\]]+)\]\(([^)]+)\)", re.MULTILINE)


def main() -> int:
    """Print every problem; exit code 1 if there is one."""
    root = Path(__file__).parent.parent
    problems = _index(root)
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            problems += _page(root, str(path.relative_to(root)))
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


def _page(root: Path, name: str) -> list[str]:
    text = (root / name).read_text("utf-8")
    problems = [
        f"{name}:{number}: {len(line)} characters, at most {WIDTH} fit"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH
    ]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(prose):
        path = target.split("#")[0]
        if path and "://" not in path and not ((root / name).parent / path).exists():
            problems.append(f"{name}: the link to {target} leads nowhere")
    return problems


def _index(root: Path) -> list[str]:
    """Compare the index of decisions with the files and their titles."""
    index = (root / ADRS / "README.md").read_text("utf-8")
    indexed = {file: (number, " ".join(title.split())) for number, title, file in INDEXED.findall(index)}
    problems = []
    for path in sorted((root / ADRS).glob("[0-9]*.md")):
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ADR-")
        number, _, title = title.partition(": ")
        if path.name not in indexed:
            problems.append(f"{ADRS}/README.md: {path.name} is not in the index")
        elif indexed[path.name] != (number, title):
            said = " ".join(indexed[path.name])
            problems.append(f'{ADRS}/README.md: {path.name} is "{number} {title}", not "{said}"')
        if not path.name.startswith(f"{number}-"):
            problems.append(f"{ADRS}/{path.name}: its title says ADR-{number}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
