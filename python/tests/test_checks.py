"""Checks that need no code, and those that a function makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import servo
from declared import assets_of, later
from servo import Check
from servo.registry import collecting

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("check", "name", "spec"),
    [
        (servo.row_count(min=1, max=9), "row_count", {"min": 1, "max": 9}),
        (
            servo.row_count(min_ratio=0.5, max_ratio=2),
            "row_count",
            {"min_ratio_ppm": 500_000, "max_ratio_ppm": 2_000_000},
        ),
        (servo.not_null("carrier"), "not_null_carrier", {"columns": ["carrier"]}),
        (servo.unique("a", "flight id"), "unique_a_flight_id", {"columns": ["a", "flight id"]}),
        (servo.fresh("at", 90), "fresh_at", {"column": "at", "max_age_ms": 90_000}),
        (servo.schema({"a": str}), "schema", {"columns": {"a": "str"}, "allow_extra": False}),
        (
            servo.accepted_values("carrier", ["é", 1, 1.5, True, None]),
            "accepted_values_carrier",
            {"column": "carrier", "values": ['"é"', "1", "1.5", "true", "null"]},
        ),
        (servo.sql_check("no_ghosts", "select 1"), "no_ghosts", {"query": "select 1"}),
    ],
)
def test_checks_have_a_name_and_say_what_they_check(check: Check, name: str, spec: dict[str, object]) -> None:
    written = check.to_manifest()
    assert written == {"name": name, "type": check.type, "spec": spec}


def test_everything_else_is_written_unless_it_is_the_default() -> None:
    check = servo.row_count(
        min=1,
        name="enough",
        severity="CRITICAL",
        phase="pre",
        blocking=False,
        timeout="1m",
        description="Enough rows",
    )
    assert check.to_manifest() == {
        "name": "enough",
        "type": "row_count",
        "severity": "critical",
        "phase": "pre",
        "blocking": False,
        "timeout_ms": 60_000,
        "description": "Enough rows",
        "spec": {"min": 1},
    }
    plain = servo.row_count(min=1, severity="Error", phase="post", timeout="5m", blocking=None)
    assert plain == servo.row_count(min=1)
    assert hash(plain) == hash(servo.row_count(min=1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            servo.row_count,
            TypeError,
            r"^row_count\(\) checks nothing: give min=, max=, min_ratio= or max_ratio=$",
        ),
        (later(servo.row_count, min="1"), TypeError, r"^row_count\(min=\) takes an integer"),
        (later(servo.row_count, max_ratio="2"), TypeError, r"^row_count\(max_ratio=\) takes a number"),
        (
            servo.not_null,
            TypeError,
            r'^not_null\(\) checks nothing: name its columns, such as not_null\("carrier"\)$',
        ),
        (later(servo.unique, ["a"]), TypeError, r"^each of unique\(\) takes a text"),
        (
            later(servo.unique, "a", severity="bad"),
            ValueError,
            r"^severity= takes one of info, warning, error, critical",
        ),
        (later(servo.unique, "a", severity=3), TypeError, r"^severity= takes one of info"),
        (later(servo.unique, "a", phase="mid"), ValueError, r"^phase= takes one of pre, post"),
        (
            later(servo.unique, "a", severty="error"),
            TypeError,
            r"has no argument severty=: did you mean severity=\?$",
        ),
        (later(servo.fresh, "at", "soon"), ValueError, r"^fresh\(max_age\) takes a duration"),
        (later(servo.schema, ["a"]), TypeError, r"^schema\(\) takes a dict of types by column"),
        (
            later(servo.accepted_values, "a", "AA"),
            TypeError,
            r"^accepted_values\(values\) takes a list of values",
        ),
        (
            later(servo.accepted_values, "a", [b"AA"]),
            TypeError,
            r"^each of accepted_values\(values\) takes a text,",
        ),
        (later(servo.sql_check, "a", 1), TypeError, r"^sql_check\(query\) takes a text"),
    ],
)
def test_arguments_of_another_type_are_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_decorated_check_stays_a_function_and_describes_itself() -> None:
    with collecting() as found:
        flights = servo.external("raw.flights")

        @servo.asset_check(asset=flights, severity="warning")
        def are_known(rows: list[str]) -> bool:
            """Carriers are known.

            To us.
            """
            return "ZZ" not in rows

    assert not are_known(["ZZ"])
    (check,) = assets_of(found)["raw/flights"]["checks"]
    assert check == {
        "name": "are_known",
        "type": "python",
        "severity": "warning",
        "description": "Carriers are known.",
        "function": f"{__name__}:{are_known.__qualname__}",
        "location": {"file": "test.py", "line": found.checks[0].location.line},
    }
    assert repr(found.checks[0]) == "<check are_known of raw/flights>"


def test_a_check_is_of_one_asset() -> None:
    with collecting():

        @servo.multi_asset(outputs=[servo.AssetSpec("a.a"), servo.AssetSpec("a.b")])
        def both() -> None: ...

        several: Any = both
        with pytest.raises(TypeError, match=r"<assets a/a, a/b> are 2 assets: give the key of one of them$"):
            servo.asset_check(asset=several)
        with pytest.raises(TypeError, match=r"^@asset_check\(asset=\) takes an asset, such as"):
            servo.asset_check(asset=7)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^@asset_check decorates a function, not the int 7$"):
            servo.asset_check(asset="a.a")(7)  # type: ignore[arg-type]


def test_functions_do_not_belong_among_the_checks_of_an_asset() -> None:
    def known() -> None: ...

    with pytest.raises(
        TypeError, match=r"checks= has the function known: decorate it with @asset_check\(asset=…\)"
    ):
        servo.AssetSpec("a.a", checks=[known])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^asset a\.a: each of checks= takes a check, such as"):
        servo.AssetSpec("a.a", checks=["not_null"])  # type: ignore[list-item]
