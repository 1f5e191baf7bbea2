"""Temperatures of a made-up weather station: by the hour, by the day, and over a week."""

from __future__ import annotations

import math
from typing import TypedDict
from zlib import crc32

import servo

days = servo.DailyPartitions(start="2026-01-01")


class Reading(TypedDict):
    """The readings of an hour."""

    hour: int
    celsius: float


class Day(TypedDict):
    """The summary of a day."""

    date: str
    low: float
    high: float


@servo.asset(
    namespace="raw",
    partitions=days,
    checks=[servo.row_count(min=24, max=24), servo.unique("hour"), servo.not_null("celsius")],
)
def readings(ctx: servo.Context) -> list[Reading]:
    """Temperatures of a day. Read yours from a file, an API or a database instead."""
    mean = crc32(str(ctx.partition).encode()) % 20
    wave = [math.sin(math.pi * (hour - 8) / 12) for hour in range(24)]
    return [{"hour": hour, "celsius": round(mean + 5 * wave[hour], 1)} for hour in range(24)]


@servo.asset(namespace="analytics", partitions=days)
def daily(ctx: servo.Context, readings: list[Reading]) -> list[Day]:
    """Lowest and highest temperature of a day. The parameter `readings` is the asset with that name."""
    celsius = [reading["celsius"] for reading in readings]
    return [{"date": str(ctx.partition), "low": min(celsius), "high": max(celsius)}]


@servo.asset(namespace="analytics", partitions=days, deps=[servo.dep(daily, mapping=servo.window(-6, 0))])
def weekly(daily: list[Day]) -> dict[str, float]:
    """The same over a day and the six before it; there are fewer at the start."""
    return {"low": min(day["low"] for day in daily), "high": max(day["high"] for day in daily)}


@servo.asset_check(asset=daily, severity="critical")
def is_of_this_planet(daily: list[Day]) -> bool:
    """A critical check that fails keeps the data from everything that depends on it."""
    return all(-90 < day["low"] <= day["high"] < 60 for day in daily)


servo.schedule(name="morning", cron="0 6 * * *", selection="raw.readings+")


@servo.push_sensor(selection="raw.readings+")
def corrected(message: servo.Message) -> servo.RunRequest:
    """A station has corrected a day. Try `servo sensor push corrected --data '{"date": "2026-01-02"}'`."""
    return servo.RunRequest(partition=message.data["date"])
