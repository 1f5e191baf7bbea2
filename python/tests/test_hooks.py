"""Functions that are called when an attempt has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import servo
from running import error_of, started

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """
import servo

class Pager(servo.Resource):
    def call(self, text):
        print("paged", text)

servo.resource("pager", Pager())

def worked(ctx):
    print("made", ctx.asset, ctx.attempt)

def failed(ctx, error, pager: Pager):
    pager.call(f"{ctx.asset} {type(error).__name__}: {error}")

def broken(ctx):
    raise KeyError("no such hook")

@servo.asset(on_success=worked, on_failure=failed)
def good():
    return 1

@servo.asset(on_success=worked, on_failure=failed)
def bad():
    raise ValueError("no flights")

@servo.asset(on_success=broken)
def odd():
    return 1

outputs = [servo.AssetSpec("default.one"), servo.AssetSpec("default.two")]

@servo.multi_asset(outputs=outputs, on_success=worked)
def both():
    return 1, 2
"""


def test_hooks_are_told_how_an_attempt_ended_and_change_nothing(tmp_path: Path) -> None:
    with started(tmp_path, PROJECT) as runner:
        assert runner.run("good")["outcome"] == "SUCCEEDED"
        assert error_of(runner.run("bad", attempt=2))["message"] == "no flights"
        assert runner.run("odd")["outcome"] == "SUCCEEDED"
        assert runner.run("both", assets=["default/one", "default/two"])["outcome"] == "SUCCEEDED"
        assert runner.exit() == 0
        assert runner.output.splitlines() == [
            "made default.good 1",
            "paged default.bad ValueError: no flights",
            "made default.one 1",
        ]
        assert "on_success of odd() failed:" in runner.errors
        assert "KeyError: 'no such hook'" in runner.errors


def test_a_hook_is_a_function() -> None:
    with pytest.raises(TypeError, match=r"asset default\.flights: on_failure= takes a function of ctx"):

        @servo.asset(on_failure="page me")  # type: ignore[call-overload,untyped-decorator]
        def flights() -> None:
            pass


def test_hooks_are_called_where_assets_are_made_in_memory() -> None:
    told: list[str] = []

    def worked(ctx: servo.Context) -> None:
        told.append(f"{ctx.asset} worked")

    def failed(ctx: servo.Context, error: BaseException) -> None:
        told.append(f"{ctx.asset}: {type(error).__name__}")
        raise KeyError("no such hook")

    with servo.collecting():

        @servo.asset(on_success=worked, on_failure=failed)
        def good() -> int:
            return 1

        @servo.asset(on_success=worked, on_failure=failed, checks=[servo.row_count(min=5, blocking=True)])
        def few() -> list[int]:
            return [1]

        @servo.asset(on_failure=failed)
        def bad() -> int:
            raise ValueError("no flights")

    made = servo.materialize([good, few, bad], raise_on_error=False)
    assert isinstance(made.error, ValueError)
    assert told == ["default.good worked", "default.few: TaskError", "default.bad: ValueError"]
