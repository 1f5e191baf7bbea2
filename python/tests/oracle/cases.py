"""The questions that are asked about each zone, with their answers.

A case is an object that Servo reads. Where it has a digest, that is SHA-256 of the lines that `lines` gives.
"""

from __future__ import annotations

import hashlib
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from oracle.clock import ASKED_FROM, ASKED_UNTIL, DAY, Change, Clock
from oracle.mappings import FOREVER, Pair
from oracle.windows import HOUR, Definition, Windows, wall_text, windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Case: TypeAlias = dict[str, Any]

DAILY: Definition = {"kind": "daily"}
HOURLY: Definition = {"kind": "hourly"}
WEEKLY: Definition = {"kind": "weekly", "weekday": 7}
FRIDAYS: Definition = {"kind": "weekly", "weekday": 5}
MONTHLY: Definition = {"kind": "monthly", "day": 1}
CALENDARS: list[Definition] = [
    DAILY,
    WEEKLY,
    FRIDAYS,
    MONTHLY,
    {"kind": "monthly", "day": 28},
]
QUARTERS: Definition = {"kind": "cron", "cron": "*/15 * * * *"}
EVERY_HOUR: Definition = {"kind": "cron", "cron": "0 * * * *"}
EVERY_OTHER_HOUR: Definition = {"kind": "cron", "cron": "0 */2 * * *"}
BEFORE_DAWN: Definition = {"kind": "cron", "cron": "30 2 * * *"}
# Several times that one gap swallows, to the second.
AT_NIGHT: Definition = {"kind": "cron", "cron": "*/20 0,59 0-3 * * *"}
CRONS: list[Definition] = [
    EVERY_HOUR,
    EVERY_OTHER_HOUR,
    BEFORE_DAWN,
    AT_NIGHT,
    *(
        {"kind": "cron", "cron": text}
        for text in ("0 0 * * 0", "15 1 1 * *", "0 12 L * *", "0 30 1 * * 1-5", "0 0 13 * 5", "0 0 */2 * 1")
    ),
]


def spanning(kind: Definition, zone: str, start: int, end: int, end_offset: int = 0) -> Definition:
    """A definition of a kind from one wall time to another, both included."""
    length = 16 if kind["kind"] in {"hourly", "cron"} else 10
    span = {"start": wall_text(start)[:length], "end": wall_text(end)[:length], "end_offset": end_offset}
    return {**kind, "span": {**span, "timezone": zone}}


def always(kind: Definition, zone: str, end_offset: int = 0) -> Definition:
    """A definition of a kind for the years 2000 to 2040."""
    return spanning(kind, zone, ASKED_FROM, ASKED_UNTIL - HOUR, end_offset)


def lines(case: Case) -> Iterator[str]:
    """The lines that the digest of a case covers."""
    if case["case"] == "keys":
        partitions = windows(case["partitions"])
        for first, end in case["ranges"]:
            yield from (partitions.line(index) for index in range(first, end))
        return
    pair = Pair(case["mapping"], windows(case["downstream"]), windows(case["upstream"]))
    for now, first, end in case["reads"]:
        moment = FOREVER if now is None else now
        yield from (f"{index} reads {pair.reads(index, moment)}" for index in range(first, end))
    for first, end in case["read_by"]:
        yield from (f"{index} read by {pair.read_by(index)}" for index in range(first, end))


def with_digest(case: Case) -> Case:
    """The case with its digest."""
    text = "".join(f"{line}\n" for line in lines(case))
    return {**case, "digest": hashlib.sha256(text.encode()).hexdigest()}


def joined(ranges: Iterable[tuple[int, int]], total: int) -> list[tuple[int, int]]:
    """Ascending ranges as far as they are in 0 to `total`, without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in ranges:
        first, end = max(low, found[-1][1] if found else 0), min(high, total)
        if first < end:
            found.append((first, end))
    return found


def changes(zone: str) -> list[int]:
    """The instants at which clocks change."""
    return [after.start for _, after in Clock.of(zone).changes()]


def moments(partitions: Windows, zone: str) -> Iterator[tuple[int, int]]:
    """Times in milliseconds around the first, the last and every change, with what exists at them."""
    ends = (partitions.start(0), partitions.start(1), partitions.start(partitions.total))
    for instant in chain(ends, changes(zone)):
        close = partitions.start(partitions.around(instant) + 1)
        for time in (instant, close):
            yield from ((millis, partitions.count(millis)) for millis in (time * 1000 - 1, time * 1000))
    for instant in (ASKED_FROM - 400 * DAY, ASKED_UNTIL + 400 * DAY):
        yield instant * 1000, partitions.count(instant * 1000)


def keys(definition: Definition, reach: int | None) -> Case:
    """The keys of partitions, all of them or as far as `reach` seconds around every change."""
    zone = definition["span"]["timezone"]
    partitions = windows(definition)
    ranges = [(0, partitions.total)]
    if reach is not None:
        around = ((at - reach, at + reach) for at in changes(zone))
        ranges = joined(
            ((partitions.around(start), partitions.around(end) + 1) for start, end in around),
            partitions.total,
        )
    case: Case = {
        "case": "keys",
        "partitions": definition,
        "total": partitions.total,
        "counts": list(moments(partitions, zone)),
        "ranges": ranges,
        "uneven": [],
        "skipped": [],
    }
    if definition["kind"] == "daily" and reach is None:
        starts = [partitions.start(index) for index in range(partitions.total + 1)]
        case["uneven"] = [
            (partitions.key(index), start, end)
            for index, (start, end) in enumerate(pairwise(starts))
            if end - start != DAY
        ]
        case["skipped"] = skipped(zone)
    return with_digest(case)


def skipped(zone: str) -> list[str]:
    """The dates that no clock showed, as keys."""
    clock = Clock.of(zone)
    found = []
    for before, after in clock.changes():
        first, last = after.start + before.offset, after.start + after.offset
        days = range(first // DAY, last // DAY + 1)
        gone = [day for day in days if not clock.has(day)]
        found += [f"date=d:{wall_text(day * DAY)[:10]}" for day in gone]
    return found


def odd_spans(kind: Definition, zone: str, step: int, at: list[Change]) -> Case:
    """Partitions that start or end at a time that clocks skip, or show twice, or just not."""
    found = []
    for before, after in at:
        shown = sorted((after.start + before.offset, after.start + after.offset))
        for time in range(shown[0] // step * step, shown[1] + step + 1, step):
            for start, end in ((time, time + DAY), (time - DAY, time), (time, time)):
                definition = spanning(kind, zone, start, end)
                partitions = windows(definition)
                if partitions.total:
                    ends = (partitions.key(0), partitions.key(partitions.total - 1))
                    span = definition["span"]
                    found.append((span["start"], span["end"], partitions.total, *ends))
    return {"case": "spans", "partitions": always(kind, zone), "spans": found}


def unlike(at: list[Change]) -> list[Change]:
    """One of all changes that happen at the same time of day from the same offset to the same other."""
    shapes = {}
    for before, after in at:
        shapes[(after.start + before.offset) % DAY, before.offset, after.offset] = (before, after)
    return list(shapes.values())


def mapped(mapping: dict[str, Any], down: Definition, up: Definition, at: list[int]) -> Case:
    """Upstream and downstream partitions around instants, once everything exists and at those instants."""
    pair = Pair(mapping, windows(down), windows(up))
    near = [(pair.down.around(instant - 1), pair.down.around(instant) + 2) for instant in at]
    near_up = [(pair.up.around(instant - 1), pair.up.around(instant) + 2) for instant in at]
    reads: list[tuple[int | None, int, int]] = [(None, *some) for some in joined(near, pair.down.total)]
    for instant, (first, end) in zip(at, near, strict=True):
        reads += [(instant * 1000, *some) for some in joined([(first, end - 1)], pair.down.total)]
    return with_digest(
        {
            "case": "mapping",
            "mapping": mapping,
            "downstream": down,
            "upstream": up,
            "reads": reads,
            "read_by": joined(near_up, pair.up.total),
        }
    )


def mappings(zone: str, other: str) -> Iterator[Case]:
    """Mappings within a zone, and between it, UTC and another zone."""
    at = changes(zone)
    # The asset depended on starts and ends in the midst of a change of clocks, where there are enough.
    start, end = (at[2], at[-3]) if len(at) > 8 else (ASKED_FROM + 400 * DAY, ASKED_UNTIL - 400 * DAY)

    def shorter(kind: Definition, of: str) -> Definition:
        clock = Clock.of(of)
        first, last = (clock.shows(instant) // HOUR * HOUR for instant in (start, end))
        return spanning(kind, of, first, last)

    time = {"kind": "time"}
    grains = (HOURLY, DAILY, WEEKLY, MONTHLY)
    within = [(down, up) for down in grains for up in grains if down is not up or up is DAILY]
    crons = [(DAILY, EVERY_OTHER_HOUR), (BEFORE_DAWN, HOURLY), (AT_NIGHT, WEEKLY), (EVERY_HOUR, AT_NIGHT)]
    for down, up in within + crons:
        yield mapped(time, always(down, zone), shorter(up, zone), at)
    for down, up in ((DAILY, DAILY), (DAILY, HOURLY), (HOURLY, DAILY), (WEEKLY, DAILY), (WEEKLY, MONTHLY)):
        yield mapped(time, always(down, zone), shorter(up, "UTC"), at)
        yield mapped(time, always(up, "UTC"), shorter(down, zone), at)
    for down, up in ((DAILY, DAILY), (HOURLY, WEEKLY), (MONTHLY, DAILY)):
        yield mapped(time, always(down, zone), shorter(up, other), at)
        yield mapped(time, always(up, other), shorter(down, zone), at)
    for kind in (DAILY, FRIDAYS, BEFORE_DAWN):
        for mapping in ({"kind": "same"}, {"kind": "window", "from": -6, "to": 0}):
            yield mapped(mapping, always(kind, zone), shorter(kind, zone), at)
            yield mapped(mapping, shorter(kind, zone), always(kind, zone), at)
    for mapping in ({"kind": "all"}, {"kind": "last"}):
        yield mapped(mapping, always(DAILY, zone), shorter(HOURLY, zone), at)


def of_names(zones: list[str]) -> Iterator[Case]:
    """Cases that tell one sequence of clock changes from another, for all zones whose clocks always agree."""
    for case in (keys(always(DAILY, zones[0]), DAY), keys(always(QUARTERS, zones[0]), 2 * HOUR)):
        definition = case["partitions"]
        for zone in zones:
            yield {**case, "partitions": {**definition, "span": {**definition["span"], "timezone": zone}}}


def of_zone(zone: str, other: str) -> Iterator[Case]:
    """The remaining cases, for one of them."""
    at = Clock.of(zone).changes()
    for kind in CALENDARS:
        yield keys(always(kind, zone), None)
        yield from (keys(always(kind, zone, end_offset), 0) for end_offset in (-3, 2))
    yield odd_spans(DAILY, zone, DAY, unlike(at))
    yield keys(always(HOURLY, zone), DAY)
    yield keys(always(HOURLY, zone, -30), 0)
    yield odd_spans(HOURLY, zone, HOUR, at)
    for kind in CRONS:
        yield keys(always(kind, zone), 6 * HOUR)
    for kind in (EVERY_HOUR, AT_NIGHT):
        yield odd_spans(kind, zone, HOUR // 2, unlike(at))
    yield from mappings(zone, other)
