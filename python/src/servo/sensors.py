"""Sensors: functions that look for something new, or are told of it, and request runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

from servo.arguments import boolean, text
from servo.durations import milliseconds
from servo.functions import first_paragraph, function_name, plain_function
from servo.location import Location, here
from servo.registry import current
from servo.schedules import selection_and_kin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from servo.durations import Duration
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")

_INTERVAL_MS: Final = 30_000


class Sensor:
    """A sensor; made by `sensor` and `push_sensor`."""

    def __init__(
        self, location: Location, name: str, function: Callable[..., object], **said: object
    ) -> None:
        """Take the place, the name, the function and the fields of the manifest that are given."""
        self.location = location
        self.name = name
        self.function = function
        self._said = said

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        found: dict[str, object] = {
            "name": self.name,
            "location": self.location.to_manifest(context),
            "function": function_name(self.function),
            **self._said,
        }
        if "description" not in found and (description := first_paragraph(self.function)):
            found["description"] = description
        return found

    def __repr__(self) -> str:
        return f"<sensor {self.name}>"


@overload
def sensor(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def sensor(
    *,
    interval: Duration = ...,
    selection: str | None = ...,
    name: str | None = ...,
    description: str | None = ...,
    tags: Mapping[str, str] | None = ...,
    enabled: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def sensor(  # noqa: PLR0913 - each is named
    function: Callable[..., Any] | None = None,
    /,
    *,
    interval: Duration = "30s",
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    enabled: bool = True,
) -> object:
    """Declare that a function looks for something new. The function stays as it is.

    Args:
        function: The function, when used without parentheses.
        interval: How long after one evaluation the next one starts.
        selection: What it may request, such as `raw.flights`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the docstring, unless given.
        tags: Tags of the runs that it requests.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @sensor(interval="1m", selection="raw.flights")
    ...     def inbox(ctx): ...
    >>> found.sensors
    [<sensor inbox>]
    """
    said = selection_and_kin("sensor", selection, description, tags)
    interval_ms = milliseconds("sensor(interval=)", interval)
    if interval_ms != _INTERVAL_MS:
        said["interval_ms"] = interval_ms
    declare = _declaring("sensor", name, said, enabled=enabled)
    return declare if function is None else declare(function)


@overload
def push_sensor(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def push_sensor(
    *,
    selection: str | None = ...,
    name: str | None = ...,
    description: str | None = ...,
    tags: Mapping[str, str] | None = ...,
    enabled: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def push_sensor(  # noqa: PLR0913 - each is named
    function: Callable[..., Any] | None = None,
    /,
    *,
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    enabled: bool = True,
) -> object:
    """Declare that a function is called with messages that are sent to it. The function stays as it is.

    Args:
        function: The function, when used without parentheses.
        selection: What it may request, such as `raw.flights`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the docstring, unless given.
        tags: Tags of the runs that it requests.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @push_sensor
    ...     def uploaded(ctx, message): ...
    >>> found.sensors
    [<sensor uploaded>]
    """
    said = selection_and_kin("push_sensor", selection, description, tags)
    said["push"] = True
    declare = _declaring("push_sensor", name, said, enabled=enabled)
    return declare if function is None else declare(function)


def _declaring(
    what: str, name: str | None, said: dict[str, object], *, enabled: bool
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    location = here()
    if not boolean(f"{what}(enabled=)", enabled):
        said["enabled"] = False
    if name is not None:
        text(f"{what}(name=)", name, "inbox")

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        own_name = plain_function(f"@{what}", function).__name__
        current().sensors.append(Sensor(location, own_name if name is None else name, function, **said))
        return function

    return declare
