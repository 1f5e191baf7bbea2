"""The commands of the documentation: all of them exist, and those of pages to follow are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scanning import SOURCE
from serving import NAMES, PROGRAM

ROOT = SOURCE.parents[1]
PAGES = sorted(
    page
    for pattern in ("README.md", "docs/*.md", "docs/*/*.md", "examples/*/README.md", "python/README.md")
    for page in ROOT.glob(pattern)
    if page.parent.name != "adr" and page.name != "api-reference.md"
)
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A word that stands for something: an id, a range that is left out, one of several.
STANDS_FOR_A_VALUE = re.compile(r"a value is required for|invalid value '[A-Z]+'")
STANDS_FOR = re.compile(r"…|\[|\]|\.\.\.$")


def typed(block: str) -> list[str]:
    """Give what is typed in a block, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [re.split(r"\s{2,}#|\s#\s", line[2:])[0].strip() for line in lines if line.startswith("$ ")]


def commands(text: str) -> list[str]:
    """Give every command of a page: typed at a prompt, or named in a sentence."""
    blocks = FENCED.findall(text)
    prompted = [line for block in blocks for line in typed(block) if line.startswith("servo ")]
    named = re.findall(r"`(servo [a-z][^`]*)`", FENCED.sub("", text).replace("\n", " "))
    return [*prompted, *named]


def alternatives(command: str) -> list[list[str]]:
    """Give the words of a command, once for each of `list|show`; what stands for something is left out."""
    command = re.split(r" (?:[|<>]|&&) ", command)[0]
    words = re.findall(r"'[^']*'|\"[^\"]*\"|\S+", command)
    known: list[list[str]] = [[]]
    for word in words[1:]:
        bare = word.strip("'\"")
        if STANDS_FOR.search(bare):
            continue
        choices = bare.split("|") if re.fullmatch(r"[a-z|-]+", bare) else [bare]
        known = [[*before, choice] for before in known for choice in choices]
    return known


def run(words: list[str], directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory."""
    inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
    found = {
        "SERVO_CONFIG": str(directory / "contexts.toml"),
        "SERVO_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
        "PATH": f"{Path(PROGRAM).parent}:{inherited['PATH']}",
    }
    return subprocess.run(  # noqa: S603 - commands of our own documentation
        words,
        cwd=directory,
        env={**inherited, **found, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(autouse=True)
def _program() -> None:
    if not Path(PROGRAM).is_file():
        pytest.fail("the servo program is not built: make demo builds it")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_only_commands_and_options_that_there_are(page: Path, tmp_path: Path) -> None:
    wrong: list[str] = []
    for command in commands(page.read_text("utf-8")):
        for words in alternatives(command):
            done = run([PROGRAM, *words, "--help"], tmp_path)
            if done.returncode != 0 and not STANDS_FOR_A_VALUE.search(done.stderr):
                wrong.append(f"{command}: {done.stderr.splitlines()[0]}")
    assert wrong == []


def bash(line: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a line as people type it."""
    return run(["bash", "-c", line], directory)


def good(line: str, directory: Path) -> str:
    """Run a line that must succeed, and give what it prints."""
    done = bash(line, directory)
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_tutorial_can_be_followed_by_the_letter(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    blocks = FENCED.findall(text)
    lines = [line for block in blocks for line in typed(block)]
    assert lines[:2] == ["servo init station", "cd station"]
    good(lines[0], tmp_path)
    station = tmp_path / "station"
    pipeline = station / "pipeline.py"
    warm_days = next(block for block in blocks if block.startswith("warm_days = "))
    right = pipeline.read_text("utf-8")
    wrong = re.sub(r'"high": [^},\n]+', '"high": 451.0', right, count=1)
    assert wrong != right
    for line in lines[2:]:
        command = line.replace("RUN", "latest")
        if line == "servo dev":
            continue
        if line.endswith("--partition 2026-01-03"):
            pipeline.write_text(wrong, "utf-8")
            done = bash(command, station)
            assert done.returncode == 1
            assert "CHECK_FAILED: a check blocked it, output discarded" in done.stdout + done.stderr
            pipeline.write_text(right, "utf-8")
            continue
        if "analytics.warm_days" in line:
            pipeline.write_text(f"{right}\n\n{warm_days}", "utf-8")
        printed = good(command, station)
        shown = next(block for block in blocks if f"$ {line}" in block).splitlines()
        if line.startswith("servo asset graph"):
            assert printed.splitlines() == shown[1:]
        if line.startswith("servo plan"):
            columns = [re.sub(r"\s+", " ", row) for row in printed.splitlines()[1:]]
            assert columns == [re.sub(r"\s+", " ", row) for row in shown[2:]]
    made = good("servo sql 'select count(*) as n from analytics.warm_days' --csv", station)
    assert made.splitlines()[0] == "n"


def test_the_first_assets_of_the_readme_are_made_as_it_says(tmp_path: Path) -> None:
    blocks = FENCED.findall((ROOT / "README.md").read_text("utf-8"))
    good("servo init weather", tmp_path)
    weather = tmp_path / "weather"
    code = next(block for block in blocks if block.startswith("import servo"))
    (weather / "pipeline.py").write_text(code, "utf-8")
    shown = next(block for block in blocks if "$ servo sql" in block)
    make, query = typed(shown)
    good(make, weather)
    assert good(query, weather).split() == " ".join(shown.splitlines()[-2:]).split()


# The code of a project, in a recipe that has one.
PROJECT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = [
    page
    for page in PAGES
    if page.parent.name in ("guides", "cookbook")
    and commands(text := page.read_text("utf-8"))
    and PROJECT.search(text)
]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_commands_of_a_recipe_work(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    code = "".join(PROJECT.findall(text))
    (tmp_path / "servo.toml").write_text('[project]\nmodules = ["pipeline"]\n', "utf-8")
    (tmp_path / "pipeline.py").write_text(code, "utf-8")
    for command in commands(text):
        words = command.split()
        # What is blocked is meant to be; what has no argument is the name of a command.
        if len(words) < 3 or "ID" in words:
            continue
        if "quarantine" in words:
            assert bash("servo materialize '*'", tmp_path).returncode == 1
        elif "check" in words or "sql" in words:
            good("servo materialize '*'", tmp_path)
        good(command, tmp_path)


def test_the_example_of_the_flights_shows_its_graph(tmp_path: Path) -> None:
    left = shutil.ignore_patterns(".servo", "__pycache__")
    flights = shutil.copytree(ROOT / "examples" / "flights", tmp_path / "flights", ignore=left)
    text = (ROOT / "examples" / "flights" / "README.md").read_text("utf-8")
    shown = next(block for block in FENCED.findall(text) if "$ servo asset graph" in block).splitlines()
    assert good("servo asset graph", flights).splitlines() == shown[1:]
