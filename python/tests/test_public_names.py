"""The front door of the package: its names, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import servo


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)  # noqa: S603
    return set(done.stdout.split())


def test_every_public_name_exists_and_is_found_where_type_checkers_look() -> None:
    tree = ast.parse(Path(servo.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = {
        name.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert {*imports, "__version__"} == set(servo.__all__)
    for name, module in imports.items():
        assert module is not None
        assert getattr(servo, name) is getattr(sys.modules[module], name)
    assert set(servo.__all__) <= set(dir(servo))


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'servo' has no attribute 'assett'"):
        servo.assett  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_next_to_nothing() -> None:
    before = modules_after("")
    assert modules_after("import servo") - before == {"servo", "__future__"}


def test_declaring_imports_nothing_slow() -> None:
    code = """
import servo
days = servo.DailyPartitions("2013-01-01")
@servo.asset(partitions=days, retry=servo.Retry(), checks=[servo.row_count(min=1)], timeout="10m")
def flights(ctx): ...
@servo.schedule(cron="0 6 * * *")
def morning(ctx): ...
"""
    slow = {"asyncio", "dataclasses", "datetime", "inspect", "json", "pathlib", "zoneinfo", "ast"}
    assert not slow & (modules_after(code) - modules_after(""))
