"""The days and months that the data is kept in, by the clocks of New York."""

from __future__ import annotations

from typing import TYPE_CHECKING

import servo

if TYPE_CHECKING:
    import datetime as dt

days = servo.DailyPartitions(start="2013-01-01", end="2013-12-31", timezone="America/New_York")
months = servo.MonthlyPartitions(start="2013-01-01", end="2013-12-01", timezone="America/New_York")


def date_of(ctx: servo.Context) -> dt.date:
    """Give the day that is made, or the first day of the month that is made."""
    if ctx.partition is None:
        raise ValueError(f"{ctx.asset} has no partitions")
    return ctx.partition.date
