"""Projects that users start from: the examples, and the project that `servo init` writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scanning import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = SOURCE.parent.parent
FLIGHTS = ROOT / "examples" / "flights"
NEWS = ROOT / "examples" / "news"
SHOP = ROOT / "examples" / "shop"
BINARY = ROOT / "target" / "debug" / "servo"
TEMPLATE = ROOT / "crates" / "servo-cli" / "templates"


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a directory, with nothing but the SDK on its path."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    return subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *arguments],
        cwd=directory,
        env={**inherited, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def scanned(directory: Path) -> set[str]:
    """Give the assets that a project declares."""
    found = run(directory, "-m", "servo.scan")
    assert found.returncode == 0, found.stdout + found.stderr
    return {asset["key"] for asset in json.loads(found.stdout)["manifest"]["assets"]}


def output_of_tests(directory: Path) -> str:
    """Run the tests of a project, and give what they print; a warning is a failure."""
    found = run(directory, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-q")
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def pins(file: Path) -> set[str]:
    lines = (line.strip() for line in file.read_text("utf-8").splitlines())
    return {line for line in lines if line and not line.startswith("#")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write the template as `servo init` does."""
    directory = tmp_path / "station"
    # The demo is a project of its own.
    shutil.copytree(TEMPLATE, directory, ignore=shutil.ignore_patterns("__pycache__", ".*", "demo"))
    for file in directory.iterdir():
        file.write_text(file.read_text("utf-8").replace("{{name}}", "station"), "utf-8")
    (directory / "gitignore").rename(directory / ".gitignore")
    return directory


def test_the_flights_example_declares_a_pipeline() -> None:
    assert scanned(FLIGHTS) == {
        "source/all_flights",
        "source/all_weather",
        "raw/flights",
        "raw/weather",
        "raw/planes",
        "raw/airlines",
        "clean/flights",
        "analytics/delays",
        "analytics/weekly",
        "analytics/top_carriers",
        "report/monthly",
        "report/plot",
    }


def test_the_tests_of_the_example_pass() -> None:
    assert "11 passed" in output_of_tests(FLIGHTS)


def test_the_example_is_tested_with_the_versions_that_it_asks_for() -> None:
    assert pins(FLIGHTS / "requirements.txt") <= pins(ROOT / "python" / "requirements-test.txt")


def test_the_template_declares_a_pipeline(project: Path) -> None:
    assert scanned(project) == {"raw/readings", "analytics/daily", "analytics/weekly"}


def test_the_tests_of_the_template_pass_and_need_only_the_standard_library(project: Path) -> None:
    absent = ("duckdb", "numpy", "pandas", "polars", "pyarrow")
    conftest = "".join(f"sys.modules[{name!r}] = None\n" for name in absent)
    (project / "conftest.py").write_text(f"import sys\n{conftest}", "utf-8")
    assert "5 passed" in output_of_tests(project)


def test_only_the_name_is_filled_into_the_template(project: Path) -> None:
    assert {file.name for file in project.iterdir()} == {
        ".gitignore",
        "README.md",
        "pipeline.py",
        "servo.toml",
        "test_pipeline.py",
    }
    assert not [file.name for file in project.iterdir() if "{{" in file.read_text("utf-8")]


def test_the_news_of_readers_have_a_dozen_assets_and_their_tests_pass() -> None:
    found = scanned(NEWS)
    assert len(found) == 13
    assert {"recommender/model", "letters/letter"} <= found
    assert "9 passed" in output_of_tests(NEWS)


@pytest.fixture
def news(tmp_path: Path) -> Callable[..., str]:
    """Copy the example, and run commands of the real program in it."""
    program = os.environ.get("SERVO_TEST_BINARY") or str(ROOT / "target" / "debug" / "servo")
    if not Path(program).is_file():
        pytest.fail("the servo program is not built: make demo builds it")
    left = shutil.ignore_patterns(".servo", "__pycache__", "*.duckdb*", "*.txt")
    directory = shutil.copytree(NEWS, tmp_path / "news", ignore=left)

    def servo(*arguments: str, **variables: str) -> str:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SERVO_"))}
        done = subprocess.run(  # noqa: S603 - our own program
            [program, *arguments],
            cwd=directory,
            env={**inherited, "PYTHONPATH": str(SOURCE), "SERVO_PYTHON": sys.executable, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    servo.directory = directory  # type: ignore[attr-defined]
    return servo


def rows(servo: Callable[..., str], query: str) -> list[dict[str, Any]]:
    """Ask with SQL."""
    found: list[dict[str, Any]] = json.loads(servo("sql", query, "--json"))
    return found


def test_the_news_are_made_as_the_page_of_the_example_says(news: Callable[..., str]) -> None:
    directory: Path = news.directory  # type: ignore[attr-defined]
    news("materialize", "+activity.for_analysts", "--partition", "2026-01-05")
    news("materialize", "recommender.*", "--config", "components=3")
    assert len(rows(news, "select * from recommender.recommendations")) == 5
    metadata = (
        "select metadata->'explained' as part from materializations where asset_key = 'recommender/model'"
    )
    assert 0 < rows(news, metadata)[0]["part"] <= 1
    config = "select config->'components' as n from runs where selection = 'recommender.*'"
    assert rows(news, config) == [{"n": 3}]

    (directory / "subscribers.txt").write_text("ada\n", encoding="utf-8")
    looked = news("sensor", "evaluate", "somebody_subscribed", "--dry-run")
    assert "it would request 1 run\n  letters.letter [ada] as first-letter-ada: 1 task" in looked
    assert "requested 1 run" in news("sensor", "evaluate", "somebody_subscribed")
    assert "sensor somebody_subscribed" in news("run", "list")
    news("run", "watch", "latest")
    assert [row["reader"] for row in rows(news, "select * from letters.letter")] == ["ada"]

    prod = {"SERVO_ENV": "prod", "NEWS_TOKEN": "a very secret token"}
    news("materialize", "core.items", "--partition", "2026-01-06T00:00", **prod)
    count = "select count(*) as n from core.items where _partition = '2026-01-05T23:00:00Z'"
    assert rows(news, count) == [{"n": 160}]


def test_the_shop_declares_when_each_of_its_assets_is_made() -> None:
    assert scanned(SHOP) == {"raw/orders", "shop/stock", "shop/revenue", "shop/report", "shop/letter"}


@pytest.mark.skipif(not BINARY.exists(), reason="stories need the binary: cargo build -p servo-cli")
def test_the_shop_keeps_itself_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVO_BINARY", str(BINARY))
    assert "passed" in output_of_tests(SHOP)
