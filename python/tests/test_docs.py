"""The examples of guides and recipes, run as they stand on their pages."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import servo
import servo.attributes
from scanning import SOURCE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("guides/*.md"), *DOCS.glob("cookbook/*.md")])
EXAMPLES = [page for page in PAGES if page.name != "README.md"]
BLOCK = re.compile(r"^```([a-z]+(?: test)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROJECT = '[project]\nmodules = ["pipeline"]\n'


def blocks(page: Path) -> dict[str, str]:
    """Read the code of a page: all blocks of a language, one after the other."""
    found: dict[str, str] = {}
    for language, code in BLOCK.findall(page.read_text("utf-8")):
        found[language] = f"{found.get(language, '')}{code}\n"
    return found


@pytest.fixture(scope="module")
def servo_program() -> str:
    """Find the program, which is the one to say whether definitions make sense."""
    found = os.environ.get("SERVO_TEST_BINARY") or str(DOCS.parent / "target" / "debug" / "servo")
    if not Path(found).is_file():
        pytest.fail("the servo program is not built: make demo builds it")
    return found


def test_there_are_twenty_recipes_and_every_page_has_an_example() -> None:
    recipes = [page for page in PAGES if page.parent.name == "cookbook" and page.name != "README.md"]
    assert len(recipes) >= 20
    index = (DOCS / "cookbook" / "README.md").read_text("utf-8")
    assert [page.name for page in recipes if f"({page.name})" not in index] == []
    assert [page.name for page in EXAMPLES if "python test" not in blocks(page)] == []


def written(page: Path, directory: Path) -> dict[str, str]:
    """Write the project of a page, and give its blocks."""
    code = blocks(page)
    (directory / "servo.toml").write_text(code.get("toml", PROJECT), encoding="utf-8")
    (directory / "pipeline.py").write_text(code["python"], encoding="utf-8")
    if "dotenv" in code:
        (directory / ".env").write_text(code["dotenv"], encoding="utf-8")
    return code


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_the_definitions_of_a_page_make_sense(page: Path, tmp_path: Path, servo_program: str) -> None:
    written(page, tmp_path)
    environment = {**os.environ, "SERVO_PYTHON": sys.executable, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(  # noqa: S603 - our own program
        [servo_program, "asset", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_the_example_of_a_page_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = written(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    environment = dict(os.environ)
    sys.modules.pop("pipeline", None)
    try:
        with servo.collecting():
            pipeline = importlib.import_module("pipeline")
            exec(compile(code["python test"], f"{page.name}, test", "exec"), dict(vars(pipeline)))  # noqa: S102
    finally:
        sys.modules.pop("pipeline", None)
        os.environ.clear()
        os.environ.update(environment)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_pages_name_only_what_there_is(page: Path) -> None:
    words = re.findall(r"\bservo\.([A-Za-z_]+)", re.sub(r"\S+/\S*servo\S*", "", page.read_text("utf-8")))
    files = {"toml", "svg", "example", "db"}
    modules = {"testing", "io", "sql", "scan", "runner", "storage"}
    unknown = {word for word in words if not hasattr(servo, word)} - files - modules
    assert unknown == set()


CALL = re.compile(r"servo\.([A-Za-z_]+)\(")


def calls(text: str) -> list[ast.Call]:
    """Give the calls of `servo` in sentences and tables that can be read without what is left out."""
    found: list[ast.Call] = []
    for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)):
        readable = code.lstrip("@").replace("…", "...")
        if not CALL.match(readable):
            continue
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(readable, mode="eval")
            found.extend(node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return found


def known_arguments(function: object) -> set[str]:
    """Give the names of arguments of a function, those of assets included where it takes them."""
    parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    names = set(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names |= set(servo.attributes.Attributes.__annotations__)
    return names


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_calls_in_sentences_and_tables_take_what_they_are_given(page: Path) -> None:
    wrong: list[str] = []
    for call in calls(page.read_text("utf-8")):
        named = ast.unparse(call.func).removeprefix("servo.")
        function = getattr(servo, named, None)
        if function is None or not ast.unparse(call.func).startswith("servo."):
            continue
        given = {keyword.arg for keyword in call.keywords if keyword.arg}
        wrong.extend(f"{named}({name}=)" for name in given - known_arguments(function))
    assert wrong == []


CONTEXTS = [
    servo.Context,
    servo.ScheduleContext,
    servo.SensorContext,
    servo.OutputContext,
    servo.InputContext,
]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_pages_name_only_what_contexts_have(page: Path) -> None:
    has = {name for context in CONTEXTS for name in [*dir(context), *context.__annotations__]}
    assert set(re.findall(r"\bctx\.([a-z_]+)", page.read_text("utf-8"))) - has == set()
