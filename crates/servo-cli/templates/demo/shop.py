"""A web shop: orders, stock and visits of three regions, and what is made of them.

Made for looking at: one asset fails on some days, one is held back for review, one is late.
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import TypedDict

import servo

days = servo.DailyPartitions(start="{{start}}")
regions = servo.StaticPartitions(["eu", "us", "asia"])
days_by_region = servo.MultiPartitions({"date": days, "region": regions})


class Order(TypedDict):
    """One order."""

    id: int
    sku: str
    units: int
    cents: int


class Letter(servo.Config):
    """How the letter is written."""

    greeting: str = "Hello"
    pause_seconds: float = 0.4


class Line(TypedDict):
    """Revenue of one product on one day."""

    sku: str
    units: int
    revenue: float


def _random(*words: object) -> random.Random:
    """The same numbers for the same words, every time."""
    return random.Random("/".join(str(word) for word in words))  # noqa: S311 - nothing is secret


# Days of the month on which the shop is closed at night.
MAINTENANCE = (9, 23)
SKUS = [f"sku-{number:03}" for number in range(1, 13)]


@servo.asset(
    namespace="raw",
    group="ingest",
    partitions=days_by_region,
    owners=["ingest@example.org"],
    kind="python",
    checks=[servo.row_count(min=10), servo.unique("id"), servo.not_null("sku")],
)
def orders(ctx: servo.Context) -> list[Order]:
    """Orders of a day in a region."""
    chance = _random("orders", ctx.partition)
    count = chance.randint(20, 60)
    ctx.log.info("read %s orders of %s", count, ctx.partition)
    ctx.metadata(orders=count)
    return [
        {
            "id": number,
            "sku": chance.choice(SKUS),
            "units": chance.randint(1, 4),
            "cents": chance.randint(500, 9000),
        }
        for number in range(count)
    ]


@servo.asset(namespace="raw", group="ingest", owners=["ingest@example.org"], kind="python")
def products() -> dict[str, str]:
    """Names of the products."""
    return {sku: f"Product {sku[-3:]}" for sku in SKUS}


@servo.asset(namespace="raw", group="ingest", partitions=days, kind="python")
def visits(ctx: servo.Context) -> list[int]:
    """Visits of the site, by hour."""
    chance = _random("visits", ctx.partition)
    found = [chance.randint(40, 400) for _ in range(24)]
    ctx.metadata(visits=sum(found))
    return found


@servo.asset(
    namespace="raw",
    group="ingest",
    quarantine=True,
    owners=["stock@example.org"],
    checks=[servo.row_count(min=6, severity="critical")],
)
def stock() -> list[str]:
    """Products in stock. The feed was cut off: a check holds back what came, for somebody to look at."""
    return SKUS[:4]


invoices = servo.external(
    "erp.invoices", group="ingest", description="Invoices, written by the ERP system every night."
)


@servo.asset(namespace="clean", group="sales", partitions=days_by_region, kind="python")
def lines(ctx: servo.Context, orders: list[Order]) -> list[Line]:
    """Revenue by product."""
    found: dict[str, Line] = {}
    for order in orders:
        line = found.setdefault(order["sku"], {"sku": order["sku"], "units": 0, "revenue": 0.0})
        line["units"] += order["units"]
        line["revenue"] = round(line["revenue"] + order["units"] * order["cents"] / 100, 2)
    ctx.metadata(products=len(found), revenue=round(sum(line["revenue"] for line in found.values()), 2))
    return sorted(found.values(), key=lambda line: line["sku"])


@servo.asset(
    namespace="clean",
    group="sales",
    partitions=days,
    checks=[servo.row_count(min=24, max=24)],
)
def sessions(visits: list[int]) -> list[int]:
    """Visits that were more than a glance."""
    return [round(count * 0.4) for count in visits]


@servo.asset(
    namespace="sales",
    group="sales",
    partitions=days,
    owners=["sales@example.org"],
    deps=[
        servo.dep(
            lines, mapping=servo.per_dimension({"date": servo.same(), "region": servo.all_partitions()})
        ),
    ],
)
def daily(ctx: servo.Context, lines: dict[str, list[Line]]) -> dict[str, float]:
    """Revenue of all regions by day."""
    revenue = sum(line["revenue"] for each in lines.values() for line in each)
    units = sum(line["units"] for each in lines.values() for line in each)
    ctx.metadata(revenue=round(revenue, 2), units=units)
    return {"revenue": round(revenue, 2), "units": float(units)}


def _bars(values: list[float]) -> str:
    """Draw some values, as SVG."""
    heights = [round(160 * value / max(values)) for value in values]
    bars = "".join(
        f"<rect x='{48 * at + 8}' y='{168 - height}' width='40' height='{height}'/>"
        for at, height in enumerate(heights)
    )
    width = 48 * len(values) + 8
    size = f"width='{width}' height='176' viewBox='0 0 {width} 176'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}><g fill='#52b788'>{bars}</g></svg>"


@servo.asset(
    namespace="sales",
    group="sales",
    partitions=days,
    deps=[servo.dep(daily, mapping=servo.window(-6, 0))],
)
def weekly(ctx: servo.Context, daily: list[dict[str, float]]) -> dict[str, float]:
    """The same over seven days."""
    revenue = round(sum(day["revenue"] for day in daily), 2)
    by_day = servo.plot(_bars([day["revenue"] for day in daily]))
    ctx.metadata(revenue=revenue, days=len(daily), by_day=by_day)
    return {"revenue": revenue}


@servo.asset(namespace="sales", group="sales", partitions=days, retry=servo.Retry(max_attempts=2, delay="1s"))
def conversion(ctx: servo.Context, daily: dict[str, float], sessions: list[int]) -> float:
    """Units sold for each session at night, of which a shop that is closed has none."""
    is_closed = int(str(ctx.partition)[-2:]) in MAINTENANCE
    night = 0 if is_closed else sum(sessions[:5])
    ctx.log.info("sessions at night: %s", night)
    return round(daily["units"] / night, 3)


@servo.asset(
    namespace="marketing",
    group="marketing",
    freshness=servo.Freshness(max_lag=timedelta(minutes=1)),
    owners=["marketing@example.org"],
)
def audience(products: dict[str, str]) -> list[str]:
    """Who gets the letter. May be a minute old, which a demo soon is."""
    return sorted(products.values())[:6]


@servo.asset(namespace="marketing", group="marketing", deps=[servo.dep(weekly, mapping=servo.last())])
def newsletter(ctx: servo.Context, audience: list[str], config: Letter) -> str:
    """The letter of the week."""
    for step, name in enumerate(audience, 1):
        ctx.log.info("writing about %s", name)
        ctx.progress(step / len(audience), f"written about {name}")
        time.sleep(config.pause_seconds)
    return f"{config.greeting}, this week: {', '.join(audience)}"


servo.schedule(
    name="nightly",
    cron="0 3 * * *",
    timezone="Europe/Amsterdam",
    selection="+sales.weekly",
    description="Yesterday's sales, before anybody is up",
)
servo.schedule(
    name="letter",
    cron="*/5 * * * *",
    selection="marketing.newsletter",
    description="The letter, over and over",
)
servo.schedule(name="stock-check", cron="0 * * * *", selection="raw.stock", enabled=False)


@servo.sensor(name="price-list", interval="30s", selection="raw.products")
def price_list(ctx: servo.SensorContext) -> servo.SensorResult:
    """Every fourth edition of the price list has new prices."""
    edition = int(ctx.cursor or 0) + 1
    print(f"looked at edition {edition}")  # noqa: T201 - shown with the evaluation
    if edition % 4:
        return servo.SensorResult(cursor=str(edition), skip="no new prices")
    return servo.SensorResult([servo.RunRequest(run_key=f"prices-{edition}")], cursor=str(edition))


@servo.push_sensor(name="supplier", selection="raw.stock")
def supplier(message: servo.Message) -> servo.RunRequest | servo.SkipReason:
    """Reads the stock again when the supplier says that it has delivered."""
    if not message.data.get("delivered"):
        return servo.SkipReason("nothing was delivered")
    return servo.RunRequest(tags={"delivery": str(message.data.get("delivery", ""))})


@servo.sensor(name="courier", interval="2m", selection="raw.stock")
def courier() -> None:
    """Asks the courier, whose server is down: it shows what a sensor that fails looks like."""
    raise ConnectionError("courier.example.org does not answer")


servo.asset_sensor(
    name="after-sales",
    on="sales.weekly",
    selection="marketing.newsletter",
    enabled=False,
    description="The letter as soon as the week is counted",
)
