"""Schedules: runs that are requested at the ticks of a cron expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from servo.arguments import boolean, integer, text, wrong
from servo.arguments import timezone as zone_name
from servo.location import here
from servo.registry import current
from servo.run_sources import DecoratingSource, options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from servo.arguments import Zone
    from servo.durations import Duration

IfRunning = Literal["allow", "skip", "queue"]
PartitionRule = Literal["newest", "missing", "failed", "stale"]

_IF_RUNNING: Final = ("allow", "skip", "queue")
_PARTITION_RULES: Final = ("newest", "missing", "failed", "stale")
_WINDOW_MINUTES: Final = 1440
_CATCHUP_TICKS: Final = 3


class Schedule(DecoratingSource):
    """A schedule; made by `schedule`. Decorate a function with it to decide what each tick requests."""

    kind = decorator = "schedule"


def schedule(  # noqa: PLR0913 - each is named
    *,
    cron: str,
    timezone: Zone = "UTC",
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    enabled: bool = True,
    partitions: PartitionRule | Sequence[str] = "newest",
    catchup_window_minutes: int = 1440,
    max_catchup_ticks: int = 3,
    catch_up_on_resume: bool = False,
    if_running: IfRunning = "allow",
    timeout: Duration | None = None,
) -> Schedule:
    """Declare a schedule. By itself it requests its selection; decorate a function to decide at each tick.

    Of assets with partitions, a tick requests the newest complete one, unless `partitions` says otherwise.

    Args:
        cron: When: 5 fields, or 6 with seconds.
        timezone: IANA name of the time zone that `cron` is in.
        selection: What is requested, such as `analytics.*` or `raw.flights+`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the function's docstring, unless given.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        enabled: Whether it starts running when first deployed.
        partitions: The partitions that a tick requests, as of the time at which it is due: `newest`, or what
            is `missing`, `failed` last or is `stale`, or keys and ranges such as `2013-01-01..2013-01-31`. A
            tick that finds nothing to make is skipped. A function may choose others.
        catchup_window_minutes: Ticks that are older than this when they are noticed are left out.
        max_catchup_ticks: The most ticks that are made up for at once, 1 to 1000; older ones are left out.
        catch_up_on_resume: Whether ticks that it missed while paused are made up for.
        if_running: What a tick does while a run of an earlier one is active: `allow` requests its run at
            once, `skip` skips it, `queue` lets it wait until that run has ended.
        timeout: The longest that one call of the function may take; 60 seconds, unless given.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     nightly = schedule(name="nightly", cron="0 2 * * *", selection="raw.*")
    ...
    ...     @schedule(cron="0 6 * * *", timezone="Europe/Amsterdam", selection="analytics.*")
    ...     def morning(ctx): ...
    >>> found.schedules
    [<schedule nightly>, <schedule morning>]
    """
    said: dict[str, object] = {"cron": text("schedule(cron=)", cron, "0 6 * * *")}
    zone = zone_name("schedule(timezone=)", timezone)
    if zone != "UTC":
        said["timezone"] = zone
    if boolean("schedule(catch_up_on_resume=)", catch_up_on_resume):
        said["catch_up_on_resume"] = True
    if chosen := _partitions(partitions):
        said["partitions"] = chosen
    said.update(_limits(catchup_window_minutes, max_catchup_ticks, if_running))
    said |= options(
        "schedule",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    if name is not None:
        text("schedule(name=)", name, "nightly")
    found = Schedule(here(), name, None, **said)
    current().schedules.append(found)
    return found


def _partitions(rule: object) -> dict[str, object]:
    """Give the choice of a manifest; nothing for what is usual.

    >>> _partitions("newest"), _partitions("missing"), _partitions(["2013-01-01", "2013-02-01.."])
    ({}, {'missing': True}, {'keys': ['2013-01-01'], 'ranges': ['2013-02-01..']})
    """
    if isinstance(rule, str):
        if rule not in _PARTITION_RULES:
            expected = '"newest", "missing", "failed", "stale" or a list of partitions'
            raise wrong("schedule(partitions=)", rule, expected)
        return {} if rule == "newest" else {rule: True}
    if not isinstance(rule, (list, tuple)):
        what = type(rule).__name__
        raise TypeError(f"schedule(partitions=) takes a rule or a list of partitions, not a {what}")
    texts = [text("schedule(partitions=)", each, "2013-01-01") for each in rule]
    # A key that has two dots itself is written in quotes.
    ranges = [each for each in texts if ".." in each and '"' not in each]
    found = {"keys": [each for each in texts if each not in ranges], "ranges": ranges}
    return {name: values for name, values in found.items() if values}


def _limits(window: int, ticks: int, if_running: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if integer("schedule(catchup_window_minutes=)", window, 0) != _WINDOW_MINUTES:
        found["catchup_window_minutes"] = window
    if integer("schedule(max_catchup_ticks=)", ticks, 1, 1000) != _CATCHUP_TICKS:
        found["max_catchup_ticks"] = ticks
    if if_running not in _IF_RUNNING:
        raise wrong("schedule(if_running=)", if_running, '"allow", "skip" or "queue"')
    if if_running != "allow":
        found["if_running"] = if_running
    return found
