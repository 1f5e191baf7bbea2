"""A chain over days: tables, their sums, and a report over some of them."""

from __future__ import annotations

import pyarrow as pa

import servo

from .journal import chance, noted

DAYS = servo.DailyPartitions("2024-01-01", "2024-02-01")
AGAIN = servo.Retry(max_attempts=8, delay="50ms", max_delay="500ms")


@servo.asset(namespace="days", partitions=DAYS, retry=AGAIN, checks=[servo.row_count(min=1)])
def raw(ctx: servo.Context) -> pa.Table:
    """Some rows."""
    with noted(ctx):
        rng = chance(ctx)
        rows = rng.randrange(10, 500)
        return pa.table({"id": list(range(rows)), "value": [rng.random() for _ in range(rows)]})


@servo.asset(
    namespace="days", partitions=DAYS, retry=AGAIN, checks=[servo.unique("id"), servo.not_null("value")]
)
def clean(ctx: servo.Context, raw: pa.Table) -> pa.Table:
    """Rows of the same day, in another order."""
    with noted(ctx):
        return raw.sort_by([("value", "ascending")])


@servo.asset(namespace="days", partitions=DAYS, retry=AGAIN)
def total(ctx: servo.Context, clean: pa.Table) -> dict[str, int]:
    """How many rows there were: a small value, which is not staged."""
    with noted(ctx):
        return {"rows": clean.num_rows}


@servo.asset(
    namespace="days",
    partitions=DAYS,
    retry=AGAIN,
    deps=[servo.dep(total, mapping=servo.window(-1, 0))],
)
def window(ctx: servo.Context, total: dict[str, dict[str, int]]) -> dict[str, int]:
    """The sum of two days, of which one may never have been made."""
    with noted(ctx):
        return {"rows": sum(day["rows"] for day in total.values())}
