"""Assets made in memory, for tests of projects."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

import pandas as pd
import polars as pl  # noqa: TC002 - annotations are read when assets are made
import pytest

import servo
from servo import testing
from servo.partition_text import read_partition
from servo.registry import collecting

DAYS = servo.DailyPartitions("2013-01-01", timezone="America/New_York")


def test_assets_are_made_in_the_order_of_their_dependencies() -> None:
    calls = []
    with collecting():

        @servo.asset(namespace="analytics", deps=["raw.weather"])
        def delays(flights: list[int]) -> list[int]:
            calls.append("delays")
            return sorted(flights)

        @servo.asset(namespace="raw")
        def flights() -> list[int]:
            calls.append("flights")
            return [3, 0]

        @servo.asset(namespace="raw")
        def weather() -> None:
            calls.append("weather")

        @servo.asset
        async def report(rows: object = None, *, delays: list[int]) -> str:
            return f"{rows} {delays}"

    result = servo.materialize([report, delays, flights, weather])
    assert result.success
    assert calls == ["weather", "flights", "delays"]
    assert result.value("default.report") == "None [0, 3]"
    assert result.value(delays) == [0, 3]
    assert result.value("raw/weather") is None
    with pytest.raises(LookupError, match=r"raw\.nope is not among what was made: .*raw\.flights"):
        result.value("raw.nope")


def test_inputs_stand_for_assets_that_are_not_made() -> None:
    with collecting():

        @servo.asset(namespace="analytics")
        def delays(flights: list[int], weather: str = "fine") -> object:
            return [flights, weather]

    for name in ("raw.flights", "raw/flights", "flights"):
        assert servo.materialize([delays], inputs={name: [1]}).value(delays) == [[1], "fine"]
    with pytest.raises(
        Exception, match=r'needs analytics\.flights: add it .* inputs=\{"analytics\.flights": …'
    ):
        servo.materialize([delays])


def test_all_that_a_function_takes() -> None:
    class Warehouse(servo.Resource):
        torn_down = False

        def teardown(self) -> None:
            self.torn_down = True

    class Limits(servo.Config):
        most: int = 100

    with collecting():

        @servo.asset(namespace="raw", partitions=DAYS)
        def flights(ctx: servo.Context, config: Limits, warehouse: Warehouse) -> object:
            ctx.metadata(rows=3)
            ctx.progress(0.5)
            assert ctx.partition is not None
            return [
                str(ctx.partition),
                ctx.partition.start.hour,
                config.most,
                warehouse,
                ctx.secrets["TOKEN"],
                str(ctx.asset),
                ctx.run_id,
            ]

    fake = Warehouse()
    result = servo.materialize(
        [flights],
        partition=dt.date(2013, 1, 1),
        config={"most": 5},
        resources={"warehouse": fake},
        secrets={"TOKEN": "x"},
    )
    assert result.value(flights) == ["2013-01-01", 5, 5, fake, "x", "raw.flights", "run_test"]
    assert result.metadata(flights) == {"rows": 3}
    assert fake.torn_down
    with pytest.raises(ValueError, match="flights has partitions: say which, with partition="):
        servo.materialize([flights])
    with pytest.raises(ValueError, match="config= has mst, which no asset here takes: there is most"):
        servo.materialize([flights], config={"mst": 5})
    with pytest.raises(Exception, match="most takes an integer, not the text 'many'"):
        servo.materialize([flights], partition="2013-01-01", config={"most": "many"})


def test_several_assets_of_one_function() -> None:
    with collecting():

        @servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")])
        def split() -> Any:  # noqa: ANN401 - a generator
            yield servo.Output("split.b", 2, {"rows": 1})
            yield 1

        @servo.asset(namespace="split")
        def both(a: int, b: int) -> int:
            return a + b

    result = servo.materialize([both, split])
    assert result.value("split.both") == 3
    assert result.metadata("split.b") == {"rows": 1}


def test_a_check_that_blocks_stops_what_follows() -> None:
    with collecting():

        @servo.asset(checks=[servo.row_count(min=1, blocking=True)])
        def flights() -> list[int]:
            return []

        @servo.asset
        def delays(flights: list[int]) -> list[int]:
            return flights

        @servo.asset_check(asset=flights)
        def fine(flights: list[int]) -> bool:
            return not flights

        result = servo.materialize([flights, delays])
    assert not result.success
    assert [(check.name, check.passed) for check in result.checks["default.flights"]] == [
        ("row_count", False),
        ("fine", True),
    ]
    with pytest.raises(LookupError, match=r"default\.flights was not made: a check blocked it"):
        result.value(flights)
    with pytest.raises(LookupError, match=r"default\.delays was not made: default\.flights was not made"):
        result.value(delays)


def test_errors_are_raised_or_kept() -> None:
    with collecting():

        @servo.asset
        def flights() -> None:
            raise ValueError("no files")

        @servo.asset
        def delays(flights: object) -> object:
            return flights

    with pytest.raises(ValueError, match="no files"):
        servo.materialize([delays, flights])
    result = servo.materialize([delays, flights], raise_on_error=False)
    assert not result.success
    assert isinstance(result.error, ValueError)
    assert "flights" in repr(result)


def test_a_circle_is_told() -> None:
    with collecting():

        @servo.asset
        def one(two: object) -> object:
            return two

        @servo.asset
        def two(one: object) -> object:
            return one

    with pytest.raises(ValueError, match=r"in a circle: .*one\(\) → .*two\(\) → .*one\(\)"):
        servo.materialize([one, two])


def test_an_asset_may_depend_on_its_own_past() -> None:
    with collecting():

        @servo.asset(deps=[servo.dep("default.balance", mapping=servo.window(-1, -1))], partitions=DAYS)
        def balance(balance: int) -> int:
            return balance + 1

    assert servo.materialize([balance], inputs={"balance": 1}, partition="2013-01-02").value(balance) == 2


def test_what_is_no_asset_is_refused() -> None:
    with pytest.raises(TypeError, match=r"materialize\(\) takes a list of assets"):
        servo.materialize([print])  # type: ignore[list-item]


def test_a_context_for_calling_functions(caplog: pytest.LogCaptureFixture) -> None:
    ctx: servo.Context = testing.context(partition="2013-01-01", config={"a": 1}, resources={"db": "fake"})
    assert ctx.partition is not None
    assert ctx.partition.date == dt.date(2013, 1, 1)
    assert ctx.partition_window == (ctx.partition.start, ctx.partition.end)
    assert ctx.partition_range == servo.PartitionRange(ctx.partition, ctx.partition)
    assert (ctx.config, ctx.resources["db"], ctx.selected_outputs) == ({"a": 1}, "fake", ("test.asset",))
    with caplog.at_level(logging.INFO):
        ctx.log.info("%d rows", 3, extra={"rows": 3})
    assert [record.message for record in caplog.records] == ["3 rows"]


@pytest.mark.parametrize(
    ("given", "partitions", "canonical", "window"),
    [
        ("2013-01-01", None, "date=d:2013-01-01", ("2013-01-01T00:00", "2013-01-02T00:00")),
        ("2013-03-10", DAYS, "date=d:2013-03-10", ("2013-03-10T05:00", "2013-03-11T04:00")),
        (
            "2013-12",
            servo.MonthlyPartitions("2013-01-01"),
            "month=d:2013-12-01",
            ("2013-12-01T00:00", "2014-01-01T00:00"),
        ),
        (
            "2013-01-07",
            servo.WeeklyPartitions("2013-01-07"),
            "week=d:2013-01-07",
            ("2013-01-07T00:00", "2013-01-14T00:00"),
        ),
        (
            "2013-01-01T05",
            servo.HourlyPartitions("2013-01-01", timezone="Europe/Amsterdam"),
            "hour=t:2013-01-01T04:00:00.000000Z",
            ("2013-01-01T04:00", "2013-01-01T05:00"),
        ),
        (
            "2013-01-01T05:00Z",
            None,
            "hour=t:2013-01-01T05:00:00.000000Z",
            ("2013-01-01T05:00", "2013-01-01T06:00"),
        ),
        (
            "2013-01-01T06:00",
            servo.CronPartitions("0 6 * * *", start="2013-01-01"),
            "tick=t:2013-01-01T06:00:00.000000Z",
            None,
        ),
        ("eu", servo.StaticPartitions(["eu"]), "partition=s:ZXU", None),
        ("eu", None, "partition=s:ZXU", None),
        (
            "date=2013-01-01,region=eu",
            servo.MultiPartitions({"date": DAYS, "region": servo.StaticPartitions(["eu"])}),
            "date=d:2013-01-01,region=s:ZXU",
            ("2013-01-01T05:00", "2013-01-02T05:00"),
        ),
        (
            servo.PartitionKey("date=d:2013-01-01"),
            DAYS,
            "date=d:2013-01-01",
            ("2013-01-01T05:00", "2013-01-02T05:00"),
        ),
    ],
)
def test_partitions_as_people_write_them(
    given: object, partitions: servo.Partitions | None, canonical: str, window: tuple[str, str] | None
) -> None:
    partition = read_partition(given, partitions)
    assert partition.canonical == canonical
    shown = partition.window and tuple(time.isoformat(timespec="minutes")[:16] for time in partition.window)
    assert shown == window


@pytest.mark.parametrize(
    ("given", "partitions", "message"),
    [
        ("uk", servo.StaticPartitions(["eu", "us"]), "there is no partition 'uk': there is eu, us"),
        ("soon", DAYS, "soon"),
        (7, None, "partition= takes the key of a partition"),
        (
            "date=2013-01-01",
            servo.MultiPartitions({"date": DAYS, "r": DAYS}),
            "has the dimensions date, and not",
        ),
    ],
)
def test_partitions_that_are_none(given: object, partitions: servo.Partitions | None, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        read_partition(given, partitions)


def test_a_table_is_given_as_the_library_that_a_parameter_asks_for() -> None:
    with servo.collecting():

        @servo.asset
        def rows() -> pd.DataFrame:
            return pd.DataFrame({"n": [1, 2]})

        @servo.asset
        def total(rows: pl.DataFrame) -> int:
            return int(rows["n"].sum())

    assert servo.materialize([rows, total]).value(total) == 3
