"""Schedules: runs that are requested at the ticks of a cron expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeVar

from servo.arguments import boolean, integer, text, text_keys, text_map, timezone, wrong
from servo.durations import milliseconds
from servo.errors import DeclarationError
from servo.functions import first_paragraph, function_name, plain_function
from servo.location import Location, here
from servo.registry import current

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from servo.arguments import Zone
    from servo.durations import Duration
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")

IfRunning = Literal["allow", "skip", "queue"]

_IF_RUNNING: Final = ("allow", "skip", "queue")
_WINDOW_MINUTES: Final = 1440
_CATCHUP_TICKS: Final = 3


class Schedule:
    """A schedule; made by `schedule`. Decorate a function with it to decide what each tick requests."""

    def __init__(self, location: Location, name: str | None, **said: object) -> None:
        """Take the place, the name if it is given, and the fields of the manifest that are."""
        self.location = location
        self.function: Callable[..., object] | None = None
        self._name = name
        self._said = said

    @property
    def name(self) -> str:
        """The name, which is the function's unless given."""
        if self._name is not None:
            return self._name
        if self.function is None:
            problem = "a schedule has no name: give name=, or decorate a function with it"
            raise DeclarationError(self.location, problem)
        return plain_function("@schedule", self.function).__name__

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate the function that decides what a tick requests. The function stays as it is."""
        plain_function("@schedule", function)
        if self.function is not None:
            problem = (
                f"a schedule has one function, and this has {function_name(self.function)}: declare another"
            )
            raise TypeError(problem)
        self.function = function
        return function

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        found: dict[str, object] = {
            "name": self.name,
            "location": self.location.to_manifest(context),
            **self._said,
        }
        if self.function is not None:
            found["function"] = function_name(self.function)
            if "description" not in found and (description := first_paragraph(self.function)):
                found["description"] = description
        return found

    def __repr__(self) -> str:
        return f"<schedule {self._name or (self.function and self.function.__name__) or 'without a name'}>"


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
    catchup_window_minutes: int = 1440,
    max_catchup_ticks: int = 3,
    catch_up_on_resume: bool = False,
    if_running: IfRunning = "allow",
    timeout: Duration | None = None,
) -> Schedule:
    """Declare a schedule. By itself it requests its selection; decorate a function to decide at each tick.

    Of assets with partitions, a tick requests the newest complete one.

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
    zone = _timezone(timezone)
    if zone != "UTC":
        said["timezone"] = zone
    if not boolean("schedule(enabled=)", enabled):
        said["enabled"] = False
    if boolean("schedule(catch_up_on_resume=)", catch_up_on_resume):
        said["catch_up_on_resume"] = True
    said.update(_limits(catchup_window_minutes, max_catchup_ticks, if_running, timeout))
    said.update(of_runs("schedule", config, priority))
    said.update(selection_and_kin("schedule", selection, description, tags))
    if name is not None:
        text("schedule(name=)", name, "nightly")
    found = Schedule(here(), name, **said)
    current().schedules.append(found)
    return found


def selection_and_kin(what: str, selection: object, description: object, tags: object) -> dict[str, object]:
    """Check what schedules and sensors have in common.

    >>> selection_and_kin("sensor", "raw.*", None, {})
    {'selection': 'raw.*'}
    """
    found: dict[str, object] = {}
    if selection is not None:
        found["selection"] = text(f"{what}(selection=)", selection, "analytics.*")
    if description is not None:
        found["description"] = text(f"{what}(description=)", description, "Every morning")
    if tags is not None and (checked := text_map(f"{what}(tags=)", tags)):
        found["tags"] = checked
    return found


def of_runs(what: str, config: Mapping[str, object] | None, priority: int) -> dict[str, object]:
    """Check what schedules and sensors say of their runs.

    >>> of_runs("sensor", {"limit": 3}, 1)
    {'config': {'limit': '3'}, 'priority': 1}
    """
    found: dict[str, object] = {}
    if fields := text_keys(f"{what}(config=)", config):
        found["config"] = {field: _json(what, field, value) for field, value in fields.items()}
    if integer(f"{what}(priority=)", priority) != 0:
        found["priority"] = priority
    return found


def _limits(window: int, ticks: int, if_running: str, timeout: Duration | None) -> dict[str, object]:
    found: dict[str, object] = {}
    if integer("schedule(catchup_window_minutes=)", window, 0) != _WINDOW_MINUTES:
        found["catchup_window_minutes"] = window
    if integer("schedule(max_catchup_ticks=)", ticks, 1, 1000) != _CATCHUP_TICKS:
        found["max_catchup_ticks"] = ticks
    if if_running not in _IF_RUNNING:
        raise wrong("schedule(if_running=)", if_running, '"allow", "skip" or "queue"')
    if if_running != "allow":
        found["if_running"] = if_running
    if timeout is not None:
        found["timeout_ms"] = milliseconds("schedule(timeout=)", timeout)
    return found


def _json(what: str, field: str, value: object) -> str:
    import json  # noqa: PLC0415 - slow to import, and few schedules have configuration

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        problem = f"{what}(config=) has a value for {field} that is no JSON: {error}"
        raise TypeError(problem) from None


def _timezone(value: object) -> str:
    return timezone("schedule(timezone=)", value)
