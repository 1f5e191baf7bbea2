"""The checks that need no code. Each gives whether it passed, what it saw, and a sentence if it failed."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

from servo.checking.frames import Checked, NoRows
from servo.checking.types import fits
from servo.results import CheckResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from servo.checking.frames import Frame

_EXAMPLES: Final = 5


class MissingColumn(Exception):  # noqa: N818 - it is no error of ours
    """A check speaks of a column that is not there."""


def row_count(
    checked: Checked, spec: Mapping[str, Any], count_previous: Callable[[], int | None] | None
) -> CheckResult:
    """Check the number of rows; ratios only if there were any rows before.

    >>> row_count(Checked([1]), {"min": 2}, None)
    CheckResult(passed=False, metadata={'row_count': 1}, message='1 row, at least 2 are wanted')
    """
    rows = checked.row_count()
    metadata: dict[str, object] = {"row_count": rows}
    limits = [("at least", spec.get("min"), 1), ("at most", spec.get("max"), -1)]
    has_ratio = spec.get("min_ratio_ppm") is not None or spec.get("max_ratio_ppm") is not None
    previous = count_previous() if has_ratio and count_previous is not None else None
    if previous:
        metadata["previous_row_count"] = previous
        limits.append(("at least", _share(previous, spec.get("min_ratio_ppm")), 1))
        limits.append(("at most", _share(previous, spec.get("max_ratio_ppm")), -1))
    for words, limit, sign in limits:
        if limit is not None and (rows - limit) * sign < 0:
            shown = f"{limit:g}" if isinstance(limit, float) else str(limit)
            before = f", with {previous} before" if isinstance(limit, float) else ""
            message = f"{rows} {'row' if rows == 1 else 'rows'}, {words} {shown} are wanted{before}"
            return CheckResult(passed=False, metadata=metadata, message=message)
    return CheckResult(passed=True, metadata=metadata)


def _share(previous: int, ppm: int | None) -> float | None:
    return None if ppm is None else previous * ppm / 1_000_000


def not_null(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Check that columns have a value in every row."""
    frame = _with_columns(checked, spec["columns"])
    nulls = {column: count for column in spec["columns"] if (count := frame.null_count(column))}
    if not nulls:
        return CheckResult(passed=True)
    rows = frame.row_count()
    message = "; ".join(f"{count} of {rows} rows have no {column}" for column, count in nulls.items())
    return CheckResult(passed=False, metadata={"nulls": nulls}, message=message)


def unique(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Check that no two rows have the same values in columns."""
    columns = spec["columns"]
    count = _with_columns(checked, columns).duplicate_count(columns)
    if not count:
        return CheckResult(passed=True)
    message = f"{count} {'row repeats' if count == 1 else 'rows repeat'} the {', '.join(columns)} of another"
    return CheckResult(passed=False, metadata={"duplicates": count}, message=message)


def freshness(checked: Checked, spec: Mapping[str, Any], now: dt.datetime) -> CheckResult:
    """Check that the newest time in a column is not too old. Times without a zone are in UTC, as days are."""
    column = spec["column"]
    newest = _with_columns(checked, [column]).newest(column)
    if newest is None:
        return CheckResult(passed=False, message=f"{column} has no times")
    time = _time(newest)
    if time is None:
        return CheckResult(passed=False, message=f"{column} has no times, but values such as {newest!r}")
    age = now - time
    metadata = {"newest": time.isoformat(), "age_ms": age // dt.timedelta(milliseconds=1)}
    limit = dt.timedelta(milliseconds=spec["max_age_ms"])
    if age <= limit:
        return CheckResult(passed=True, metadata=metadata)
    message = f"the newest {column} is {time.isoformat()}, {age} ago, at most {limit} are wanted"
    return CheckResult(passed=False, metadata=metadata, message=message)


def _time(value: object) -> dt.datetime | None:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if not isinstance(value, dt.datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


def schema(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Check columns and their types."""
    expected: dict[str, str] = spec["columns"]
    actual = checked.frame.columns()
    missing = [name for name in expected if name not in actual]
    extra = [] if spec.get("allow_extra") else [name for name in actual if name not in expected]
    different = {
        name: {"expected": kind, "actual": actual[name]}
        for name, kind in expected.items()
        if name in actual and not fits(kind, actual[name])
    }
    problems = [f"there is no column {name}" for name in missing]
    problems += [f"column {name} is not expected" for name in extra]
    problems += [f"{name} is {each['actual']}, not {each['expected']}" for name, each in different.items()]
    if not problems:
        return CheckResult(passed=True)
    metadata = {"missing": missing, "extra": extra, "different": different}
    return CheckResult(passed=False, metadata=metadata, message="; ".join(problems))


def accepted_values(checked: Checked, spec: Mapping[str, Any]) -> CheckResult:
    """Check that a column has only some values, or none."""
    column = spec["column"]
    accepted = [json.loads(text) for text in spec["values"]]
    others = [
        (found, count)
        for found, count in _with_columns(checked, [column]).value_counts(column)
        if found is not None and _comparable(found) not in accepted
    ]
    if not others:
        return CheckResult(passed=True)
    rows = sum(count for _, count in others)
    examples = sorted(str(found) for found, _ in others)[:_EXAMPLES]
    message = f"{rows} {'row has' if rows == 1 else 'rows have'} another {column}: {', '.join(examples)}"
    if len(others) > _EXAMPLES:
        message += f" and {len(others) - _EXAMPLES} more"
    return CheckResult(passed=False, metadata={"rows": rows, "examples": examples}, message=message)


def _comparable(value: object) -> object:
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def _with_columns(checked: Checked, columns: Sequence[str]) -> Frame:
    """Look at a value as a table that has these columns."""
    frame = checked.frame
    known = frame.columns()
    absent = [column for column in columns if column not in known]
    # A list without rows has no columns, and nothing wrong with them.
    if absent and not (isinstance(checked.value, list | tuple) and not checked.value):
        import difflib  # noqa: PLC0415 - only needed to explain a mistake

        near = difflib.get_close_matches(absent[0], known, n=1)
        fix = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(known) or 'none'}"
        raise MissingColumn(f"there is no column {' and no column '.join(absent)}: {fix}")
    return frame


CHECKS: Final[dict[str, Callable[[Checked, Mapping[str, Any]], CheckResult]]] = {
    "not_null": not_null,
    "unique": unique,
    "schema": schema,
    "accepted_values": accepted_values,
}
"""Those that need nothing but the value."""

EXPECTED: Final = (NoRows, MissingColumn)
"""Raised by a check that failed, where the message says all."""
