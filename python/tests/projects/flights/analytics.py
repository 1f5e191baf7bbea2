"""Assets derived from the raw data."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import servo
from flights.raw import airlines, customers, days, flights, load_bookings, months, regions, ticks, weeks

if TYPE_CHECKING:
    import polars as pl

    from flights.stores import Warehouse


@servo.asset(
    namespace="analytics",
    partitions=days,
    checks=[
        servo.row_count(min=1, max_ratio=1.5),
        servo.not_null("carrier"),
        servo.unique("flight_id", severity="error", blocking=True),
        servo.fresh("departed_at", "26h", severity="WARNING"),
        servo.schema({"carrier": "string", "delay": "int64"}, allow_extra=True, phase="pre"),
        servo.accepted_values("carrier", ["AA", "UA", None]),
        servo.sql_check("no_ghosts", "select * from delays where carrier is null", timeout="1m"),
    ],
    freshness=servo.Freshness(max_lag="26h", deadline="0 9 * * *", timezone="Europe/Amsterdam"),
    timeout=dt.timedelta(minutes=10),
    tags={"team": "ops", "tier": "1"},
    owners=["ops@example.org", "data@example.org"],
    group="delays",
    kind=["polars", "parquet"],
    quarantine=True,
    priority=5,
    queue="large",
    code_version="2",
)
def delays(flights: pl.DataFrame, weather: pl.DataFrame | None, airlines) -> pl.DataFrame:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Delays by carrier."""
    raise NotImplementedError((flights, weather, airlines))


@servo.asset(
    namespace="analytics",
    deps=[servo.dep(delays, mapping=servo.window(-6, 0)), airlines, "raw.weather"],
    partitions=days,
)
def weekly(ctx: object, delays: pl.DataFrame, warehouse: Warehouse) -> None:
    """Delays of the last seven days."""
    raise NotImplementedError((ctx, delays, warehouse))


@servo.asset(namespace="analytics", partitions=months, description="As given", kind="sql")
def monthly(
    table: Annotated[pl.DataFrame, servo.dep("analytics.delays", mapping=servo.time_grain())],
    flights: Annotated[pl.DataFrame, servo.dep(mapping=servo.all_partitions())],
    bookings: Annotated[
        pl.DataFrame,
        servo.dep(
            load_bookings,
            mapping=servo.per_dimension(
                {"date": servo.dimension("month", servo.time_grain()), "region": servo.specific("eu", "us")}
            ),
        ),
    ],
) -> None:
    """Not this."""
    raise NotImplementedError((table, flights, bookings))


@servo.asset(namespace="analytics", partitions=weeks, deps=[servo.dep(flights, mapping=servo.last())])
def latest() -> None:
    pass


@servo.asset(
    namespace="analytics",
    partitions=regions,
    deps=[
        servo.dep(
            "raw.bookings", parameter="rows", mapping=servo.static_map({"eu": ["eu", "uk"], "us": "us"})
        )
    ],
)
def by_market(rows: list[dict[str, int]]) -> None:
    raise NotImplementedError(rows)


@servo.multi_asset(
    outputs=[
        servo.AssetSpec("split.early"),
        servo.AssetSpec(
            "split.late", deps=["analytics.delays"], partitions=customers, checks=[servo.row_count(max=9)]
        ),
    ],
    can_subset=True,
    partitions=ticks,
    deps=["raw.airlines"],
)
def split(delays: pl.DataFrame) -> tuple[object, object]:
    """Early and late flights."""
    raise NotImplementedError(delays)


@servo.asset_check(asset=delays, severity="critical", timeout=30)
def carriers_are_known(delays: pl.DataFrame) -> bool:
    """Every carrier has an airline."""
    raise NotImplementedError(delays)


@servo.asset_check(asset="split.late", name="late_is_late", blocking=False)
def check_late(late: pl.DataFrame) -> bool:
    raise NotImplementedError(late)
