"""The notebook of docs/python-client.md, run cell by cell against a real server."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serving import NAMES, Server
from servo.client import operations, sync

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python-client.md"
BLOCK = re.compile(r"^```([a-z ]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def run_cell(code: str, names: dict[str, Any]) -> str:
    """Run a cell as notebooks do: `await` may be anywhere, and the value of a last expression is shown."""
    tree = ast.parse(code)
    shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for part in (tree, ast.Expression(shown.value) if isinstance(shown, ast.Expr) else None):
            if part is None:
                continue
            mode = "exec" if isinstance(part, ast.Module) else "eval"
            compiled = compile(part, "cell", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            value = eval(compiled, names)  # noqa: S307 - our own page
            value = await value if inspect.iscoroutine(value) else value
            if value is not None:
                print(repr(value))  # noqa: T201 - a cell shows it
    return out.getvalue()


async def run_page(blocks: list[tuple[str, str]]) -> int:
    names: dict[str, Any] = {"__name__": "notebook"}
    compared = 0
    for at, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        printed = await run_cell(code, names)
        if at + 1 < len(blocks) and blocks[at + 1][0] == "text":
            assert printed == blocks[at + 1][1], code
            compared += 1
    names["client"].close()
    return compared


def test_the_notebook_does_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    (tmp_path / "servo.toml").write_text('[project]\nmodules = ["pipeline"]\n', encoding="utf-8")
    (tmp_path / "pipeline.py").write_text(dict(blocks)["python pipeline"], encoding="utf-8")
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SERVO_CONFIG", str(tmp_path / "absent.toml"))
    monkeypatch.chdir(tmp_path)
    with Server(tmp_path):
        assert asyncio.run(run_page(blocks)) >= 8


def test_the_page_names_every_method() -> None:
    text = PAGE.read_text("utf-8")
    methods = [name for name in vars(sync.Client) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}`" not in text and f"`{name}(" not in text] == []
    assert len([name for name in vars(operations) if name in methods]) > 15
