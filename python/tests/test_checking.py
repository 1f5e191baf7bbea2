"""Checks say what is wrong with data, of whichever library it is, and never raise."""

from __future__ import annotations

import datetime as dt
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import servo
from servo.checking import CheckOutcome, Gate, gate
from servo.checking.running import run_checks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servo.checks import Check

NOON = dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "carrier": "AA", "at": NOON - dt.timedelta(hours=3)},
    {"id": 2, "carrier": None, "at": NOON - dt.timedelta(hours=1)},
    {"id": 2, "carrier": "ZZ", "at": None},
]
TABLE = pa.Table.from_pylist(ROWS)
VALUES: dict[str, Callable[[], object]] = {
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy": lambda: pl.LazyFrame(ROWS),
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "dataset": lambda: ds.dataset(TABLE),
    "relation": lambda: duckdb.from_arrow(TABLE),
    "rows": lambda: ROWS,
}


@pytest.fixture(params=VALUES)
def value(request: pytest.FixtureRequest) -> object:
    return VALUES[request.param]()


def run(check: Check, value: object, **options: Any) -> CheckOutcome:  # noqa: ANN401 - passed on
    (outcome,) = run_checks([check.to_manifest()], value, **options)
    return outcome


def fails(check: Check, value: object, **options: Any) -> tuple[str | None, dict[str, object]]:  # noqa: ANN401 - passed on
    outcome = run(check, value, **options)
    assert not outcome.passed, outcome
    return outcome.message, outcome.metadata


def test_rows_are_counted(value: object) -> None:
    assert run(servo.row_count(min=3, max=3), value).metadata == {"row_count": 3}
    assert fails(servo.row_count(min=4), value) == ("3 rows, at least 4 are wanted", {"row_count": 3})
    assert fails(servo.row_count(max=2), value) == ("3 rows, at most 2 are wanted", {"row_count": 3})


def test_rows_are_compared_with_those_before() -> None:
    check = servo.row_count(min_ratio=0.5, max_ratio=2)
    for rows, passed in ((4, False), (5, True), (20, True), (21, False)):
        outcome = run(check, [1] * rows, previous=lambda: 10)
        assert outcome.passed == passed
        assert outcome.metadata == {"row_count": rows, "previous_row_count": 10}
    assert outcome.message == "21 rows, at most 20 are wanted, with 10 before"
    for previous in (None, lambda: None, lambda: 0):
        assert run(check, [1], previous=previous).passed


def test_the_word_of_a_function_that_has_stored_its_data_counts() -> None:
    assert run(servo.row_count(min=3), servo.Materialization(row_count=3)).passed
    message, _ = fails(servo.row_count(min=3), servo.Materialization("s3://lake/x"))
    assert message == "the function stored its data itself, so there is nothing to look at"


@pytest.mark.parametrize("value", [None, {"a": 1}, "text", b"bytes", 3, pd.Timestamp(0)])
def test_values_without_rows_fail_with_a_reason(value: object) -> None:
    for check in (
        servo.row_count(min=1),
        servo.not_null("id"),
        servo.sql_check("none", "select * from this"),
    ):
        message, _ = fails(check, value)
        assert message is not None
        assert "no rows" in message or "no table" in message


def test_columns_without_a_value_are_found(value: object) -> None:
    assert run(servo.not_null("id"), value).passed
    assert fails(servo.not_null("id", "carrier", "at"), value) == (
        "1 of 3 rows have no carrier; 1 of 3 rows have no at",
        {"nulls": {"carrier": 1, "at": 1}},
    )


def test_repeated_rows_are_found_and_those_that_lack_a_value_left_out(value: object) -> None:
    assert run(servo.unique("carrier"), value).passed
    assert run(servo.unique("id", "carrier"), value).passed
    assert fails(servo.unique("id"), value) == ("1 row repeats the id of another", {"duplicates": 1})


def test_missing_values_do_not_repeat_each_other() -> None:
    rows = [{"id": None}, {"id": None}]
    for made in (rows, pl.DataFrame(rows), pa.Table.from_pylist(rows), pd.DataFrame(rows)):
        assert run(servo.unique("id"), made).passed


def test_the_age_of_data_is_measured(value: object) -> None:
    assert run(servo.fresh("at", "1h"), value, now=NOON).metadata["age_ms"] == 3_600_000
    message, _ = fails(servo.fresh("at", "59m"), value, now=NOON)
    assert message == "the newest at is 2013-01-01T11:00:00+00:00, 1:00:00 ago, at most 0:59:00 are wanted"


def test_times_may_be_days_texts_and_without_a_zone() -> None:
    check = servo.fresh("at", "12h")
    times = [
        NOON.replace(tzinfo=None),
        NOON.date(),
        "2013-01-01T12:00:00",
        "2013-01-01T13:00+01:00",
        "2013-01-01",
    ]
    for time in times:
        assert run(check, [{"at": time}], now=NOON).passed
    assert fails(check, [{"at": 7}], now=NOON)[0] == "at has no times, but values such as 7"
    assert fails(check, [{"at": "soon"}], now=NOON)[0] == "at has no times, but values such as 'soon'"
    assert fails(check, TABLE.slice(0, 0), now=NOON)[0] == "at has no times"
    assert not run(servo.fresh("at", "1h"), TABLE).passed


def test_columns_and_types_are_compared(value: object) -> None:
    check = servo.schema({"id": int, "carrier": "string", "at": "timestamp"})
    assert run(check, value).passed
    assert run(servo.schema({"id": "int64"}, allow_extra=True), value).passed
    message, metadata = fails(servo.schema({"id": "string", "gate": str, "at": dt.datetime}), value)
    assert message == "there is no column gate; column carrier is not expected; id is int64, not string"
    assert metadata == {
        "missing": ["gate"],
        "extra": ["carrier"],
        "different": {"id": {"expected": "string", "actual": "int64"}},
    }


def test_types_may_be_named_as_libraries_do() -> None:
    frame = pl.DataFrame(
        {"a": ["x"], "b": [1.5], "c": [True], "d": [dt.date(2013, 1, 1)], "e": [b"x"], "f": [[1]]}
    )
    for names in (
        ["String", "Float64", "Boolean", "Date", "Binary", "List"],
        ["str", "float", "bool", "date", "bytes", "list"],
        ["large_string", "double", "bool", "date32[day]", "large_binary", "any"],
    ):
        assert run(servo.schema(dict(zip("abcdef", names, strict=True))), frame).passed
    category = frame.select(pl.col("a").cast(pl.Categorical))
    assert run(servo.schema({"a": "string"}), category).passed
    assert not run(servo.schema({"a": "nonsense"}), category).passed


def test_other_values_are_found(value: object) -> None:
    assert run(servo.accepted_values("id", [1, 2]), value).passed
    assert run(servo.accepted_values("carrier", ["AA", "ZZ"]), value).passed
    assert fails(servo.accepted_values("carrier", ["AA"]), value) == (
        "1 row has another carrier: ZZ",
        {"rows": 1, "examples": ["ZZ"]},
    )


def test_few_of_many_other_values_are_shown() -> None:
    rows = [{"day": dt.date(2013, 1, day)} for day in range(1, 10)]
    message, _ = fails(servo.accepted_values("day", ["2013-01-01"]), rows)
    assert message is not None
    assert message.startswith("8 rows have another day: 2013-01-02, ")
    assert message.endswith("2013-01-06 and 3 more")


def test_every_row_that_a_query_gives_is_a_failure(value: object) -> None:
    assert run(servo.sql_check("none", "select * from this where id > 2;"), value).passed
    check = servo.sql_check(
        "ghosts", "with ghosts as (select id from this where carrier is null) from ghosts"
    )
    assert fails(check, value) == (
        "the query gives 1 row, the first is {'id': 2}",
        {"rows": 1, "examples": [{"id": 2}]},
    )


def test_a_query_that_is_wrong_fails_with_what_duckdb_says() -> None:
    message, metadata = fails(servo.sql_check("wrong", "selec * from this"), ROWS)
    assert metadata == {}
    assert message is not None
    assert "syntax error" in message


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('SECRET')",
        "select * from read_csv('SECRET')",
        "from 'SECRET'",
        "select * from glob('SECRET')",
        "copy this to 'COPY'",
        "copy (select 1) to 'COPY'; select 1 where false",
        "attach 'COPY' as other",
        "set enable_external_access = true",
        "select * from ROWS",
        "create table kept as from this",
        "",
    ],
)
def test_a_query_reads_the_value_and_nothing_else(value: object, query: str, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("password\nhunter2\n")
    query = query.replace("SECRET", str(tmp_path / "secret.csv")).replace("COPY", str(tmp_path / "copy"))
    outcome = run(servo.sql_check("nosy", query) if query else servo.sql_check("nosy", "--"), value)
    assert not outcome.passed
    assert "hunter2" not in f"{outcome.message}{outcome.metadata}"
    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]


def test_a_column_that_is_not_there_fails_with_a_hint(value: object) -> None:
    for check in (servo.not_null("carier"), servo.unique("carier"), servo.accepted_values("carier", [])):
        assert fails(check, value)[0] == "there is no column carier: did you mean carrier?"
    assert (
        fails(servo.fresh("xyz", "1h"), value)[0] == "there is no column xyz: the columns are id, carrier, at"
    )


def test_a_list_without_rows_has_nothing_wrong() -> None:
    assert run(servo.not_null("id"), []).passed
    assert fails(servo.not_null("id"), [1])[0] == "the list holds a int, and only dicts have columns"


def check_of(function: Callable[..., object], value: object, **entry: object) -> CheckOutcome:
    check = {"name": "mine", "type": "python", "function": "flights:mine", **entry}
    (outcome,) = run_checks([check], value, resolve={"flights:mine": function}.__getitem__, ctx="the context")
    return outcome


@pytest.mark.parametrize(
    "returned",
    [
        True,
        np.bool_(1),
        (True, {"rows": 1}),
        servo.CheckResult(passed=True, metadata={"rows": 1}, message="all is well"),
    ],
)
def test_functions_say_that_they_passed(returned: object) -> None:
    outcome = check_of(lambda _flights: returned, ROWS)
    assert outcome.passed
    assert outcome.metadata in ({}, {"rows": 1})


@pytest.mark.parametrize(
    "returned",
    [
        False,
        np.bool_(0),
        (False, {"table": ["much"], "text": "long" * 20}),
        servo.CheckResult(passed=False, message="the check returned False"),
    ],
)
def test_functions_say_that_they_failed(returned: object) -> None:
    outcome = check_of(lambda _flights: returned, ROWS)
    assert (outcome.passed, outcome.message) == (False, "the check returned False")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ((False, {"rows": 1}), "rows=1"),
        ((False, {"rows": np.float64(0.5), "day": "2013-01-01", "all": {}}), "rows=0.5, day=2013-01-01"),
        (servo.CheckResult(passed=False, metadata={str(n): n for n in range(9)}), "0=0, 1=1, 2=2, 3=3, 4=4"),
    ],
)
def test_a_failure_without_a_message_says_its_numbers(returned: object, said: str) -> None:
    outcome = check_of(lambda _flights: returned, ROWS)
    assert (outcome.passed, outcome.message) == (False, f"the check returned False: {said}")


@pytest.mark.parametrize("returned", [None, "yes", 1, (True,), (True, "rows"), [True]])
def test_functions_that_say_neither_have_failed(returned: object) -> None:
    outcome = check_of(lambda _flights: returned, ROWS)
    assert not outcome.passed
    assert outcome.message is not None
    assert outcome.message.startswith("TypeError: the check returned ")


def test_functions_are_given_the_value_as_they_ask_for_it_and_the_context() -> None:
    seen: list[object] = []

    def mine(flights: pl.DataFrame, ctx: object, limit: int = 3) -> bool:
        seen.extend((type(flights), ctx, limit))
        return True

    for make in VALUES.values():
        seen.clear()
        assert check_of(mine, make()).passed
        assert seen == [pl.DataFrame, "the context", 3]
    assert check_of(lambda: True, ROWS).passed
    outcome = check_of(lambda _flights, _weather: True, ROWS)
    nothing = "a check is given the value, ctx and resources, and there is nothing for its parameter _weather"
    assert outcome.message == f"TypeError: {nothing}"


def test_what_a_function_raises_is_why_it_failed() -> None:
    def mine(_flights: object) -> bool:
        raise ValueError("the wings fell off")

    outcome = check_of(mine, ROWS)
    assert (outcome.passed, outcome.message) == (False, "ValueError: the wings fell off")
    assert (outcome.error, outcome.metadata) == ("ValueError", {})

    def leaves(_flights: object) -> bool:
        raise SystemExit

    left = check_of(leaves, ROWS)
    assert (left.message, left.error) == ("SystemExit", "SystemExit")


def test_a_function_that_cannot_be_found_has_failed() -> None:
    check = {"name": "mine", "type": "python", "function": "flights:gone"}
    (outcome,) = run_checks([check], ROWS)
    assert outcome.message == "flights:gone cannot be found here"
    functions: dict[str, Callable[..., object]] = {}
    (outcome,) = run_checks([check], ROWS, resolve=functions.__getitem__)
    assert outcome.message == "KeyError: 'flights:gone'"
    assert outcome.error == "KeyError"


def test_a_check_that_takes_too_long_has_failed_and_others_run() -> None:
    release = threading.Event()

    def mine(_flights: object) -> bool:
        return release.wait(60)

    checks: list[dict[str, Any]] = [
        {"name": "slow", "type": "python", "function": "flights:mine", "timeout_ms": 1},
        {"name": "rows", "type": "row_count", "spec": {"min": 1}},
    ]
    slow, rows = run_checks(checks, ROWS, resolve=lambda _name: mine)
    release.set()
    assert (slow.passed, slow.message) == (False, "not done after 0.001 seconds, its timeout")
    assert slow.metadata == {"timeout": True}
    assert rows.passed


VARIABLE: ContextVar[str] = ContextVar("VARIABLE")


def test_functions_see_the_variables_of_the_context() -> None:
    VARIABLE.set("seen")
    assert check_of(lambda _flights: VARIABLE.get() == "seen", ROWS).passed


def test_a_critical_failure_is_the_last_check() -> None:
    checks = [
        servo.row_count(min=4, severity="critical", blocking=False),
        servo.not_null("id"),
    ]
    outcomes = run_checks([check.to_manifest() for check in checks], ROWS)
    assert [outcome.name for outcome in outcomes] == ["row_count"]
    assert outcomes[0].blocking is False
    checks.reverse()
    assert len(run_checks([check.to_manifest() for check in checks], ROWS)) == 2


def test_a_check_that_this_version_does_not_know_has_failed() -> None:
    (outcome,) = run_checks([{"name": "x", "type": "telepathy"}], ROWS)
    assert (
        outcome.message
        == "this version of Servo has no checks of type telepathy: update it where workers run"
    )


def test_an_outcome_is_reported_with_metadata_as_texts_of_json() -> None:
    outcome = CheckOutcome("x", "unique", passed=False, message="no", metadata={"at": NOON}, duration_ms=3)
    assert outcome.to_json() == {
        "name": "x",
        "type": "unique",
        "passed": False,
        "severity": "error",
        "blocking": None,
        "message": "no",
        "error": None,
        "metadata": {"at": '"2013-01-01 12:00:00+00:00"'},
        "duration_ms": 3,
    }


@pytest.mark.parametrize(
    ("severity", "blocking", "expected"),
    [
        ("critical", None, Gate.BLOCK),
        ("error", None, Gate.WARN),
        ("warning", None, Gate.ALLOW),
        ("info", None, Gate.ALLOW),
        ("critical", True, Gate.BLOCK),
        ("error", True, Gate.BLOCK),
        ("warning", True, Gate.BLOCK),
        ("info", True, Gate.BLOCK),
        ("critical", False, Gate.WARN),
        ("error", False, Gate.WARN),
        ("warning", False, Gate.ALLOW),
        ("info", False, Gate.ALLOW),
    ],
)
def test_what_a_failed_check_lets_pass(severity: str, blocking: bool | None, expected: Gate) -> None:  # noqa: FBT001 - of the table
    passed = CheckOutcome("a", "unique", passed=True, severity="critical", blocking=True)
    failed = CheckOutcome("b", "unique", passed=False, severity=severity, blocking=blocking)
    assert gate([passed, failed, passed]) is expected
    assert gate([passed]) is Gate.ALLOW


def test_the_worst_outcome_counts() -> None:
    outcomes = [
        CheckOutcome(each, "unique", passed=False, severity=each) for each in ("error", "info", "critical")
    ]
    assert gate(outcomes) is Gate.BLOCK
    assert gate(outcomes[:2]) is Gate.WARN
