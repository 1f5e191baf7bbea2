"""A shop that keeps itself up to date, day by day."""

from __future__ import annotations

import servo

DAYS = servo.DailyPartitions(start="2026-01-05")


@servo.asset(namespace="raw", partitions=DAYS, automation=servo.on_missing())
def orders(ctx: servo.Context) -> list[dict[str, int]]:
    """Orders of a day; made up, the same for the same day."""
    if ctx.partition is None:
        raise ValueError("orders are made by day")
    day = ctx.partition.date.toordinal()
    return [{"item": item, "count": (day * item) % 7} for item in range(1, 4)]


@servo.asset(
    namespace="shop",
    partitions=DAYS,
    deps=[servo.dep("shop.stock", parameter="before", mapping=servo.window(-1, -1))],
    automation=servo.eager(),
)
def stock(before: dict[str, int] | None, orders: list[dict[str, int]]) -> dict[str, int]:
    """Items left at the end of a day: those of the day before, less what was ordered."""
    left = before or {"1": 1000, "2": 1000, "3": 1000}  # there is nothing before the first day
    sold = {str(order["item"]): order["count"] for order in orders}
    return {item: count - sold.get(item, 0) for item, count in left.items()}


@servo.asset(namespace="shop", partitions=DAYS, automation=servo.eager())
def revenue(orders: list[dict[str, int]]) -> int:
    """Revenue of a day, in cents."""
    return sum(order["count"] * order["item"] * 250 for order in orders)


@servo.asset(namespace="shop", partitions=DAYS, automation=servo.eager() | servo.code_changed())
def report(revenue: int, stock: dict[str, int]) -> str:
    """Say how the day was."""
    return f"revenue {revenue / 100:.2f}, {sum(stock.values())} items left"


@servo.asset(
    namespace="shop",
    deps=[servo.dep("shop.report", parameter="report", mapping=servo.last())],
    automation=servo.on_cron("0 7 * * 1", timezone="Europe/Amsterdam"),
)
def letter(report: str) -> str:
    """Tell the owner, on Monday morning."""
    return f"Dear owner, {report}."
