"""Schedules and sensors alike: they request runs, as declared or as a function decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, ParamSpec, TypeVar

from servo.arguments import boolean, integer, text, text_keys, text_map
from servo.durations import milliseconds
from servo.errors import DeclarationError
from servo.functions import first_paragraph, function_name, plain_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from servo.durations import Duration
    from servo.location import Location
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")


class RunSource:
    """A schedule or a sensor, as it was declared."""

    kind: ClassVar[str]

    def __init__(
        self, location: Location, name: str | None, function: Callable[..., object] | None, **said: object
    ) -> None:
        """Take the place, the name and the function if there are any, and fields of the manifest."""
        self.location = location
        self.function = function
        self._name = name
        self._said = said

    @property
    def name(self) -> str:
        """The name, which is the function's unless given."""
        if self._name is not None:
            return self._name
        if self.function is None:
            problem = f"a {self.kind} has no name: give name=, or decorate a function with it"
            raise DeclarationError(self.location, problem)
        return plain_function(f"@{self.kind}", self.function).__name__

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
        return f"<{self.kind} {self._name or (self.function and self.function.__name__) or 'without a name'}>"


class DecoratingSource(RunSource):
    """One that works by itself, and may decorate a function that decides what it requests."""

    decorator: ClassVar[str]

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate the function that decides what is requested. The function stays as it is."""
        plain_function(f"@{self.decorator}", function)
        if self.function is not None:
            problem = f"a {self.kind} has one function, and this has {function_name(self.function)}"
            raise TypeError(f"{problem}: declare another")
        self.function = function
        return function


def options(  # noqa: PLR0913 - each is named
    what: str,
    *,
    selection: str | None,
    description: str | None,
    tags: Mapping[str, str] | None,
    config: Mapping[str, object] | None,
    priority: int,
    timeout: Duration | None,
    enabled: bool,
) -> dict[str, object]:
    """Check what can be said of all of them; give what differs from the defaults.

    >>> rest = {"description": None, "tags": {}, "timeout": None, "enabled": True}
    >>> options("sensor", selection="raw.*", config={"limit": 3}, priority=1, **rest)
    {'selection': 'raw.*', 'config': {'limit': '3'}, 'priority': 1}
    """
    found: dict[str, object] = {}
    if selection is not None:
        found["selection"] = text(f"{what}(selection=)", selection, "analytics.*")
    if description is not None:
        found["description"] = text(f"{what}(description=)", description, "Every morning")
    if tags is not None and (checked := text_map(f"{what}(tags=)", tags)):
        found["tags"] = checked
    if fields := text_keys(f"{what}(config=)", config):
        found["config"] = {field: _json(what, field, value) for field, value in fields.items()}
    if integer(f"{what}(priority=)", priority) != 0:
        found["priority"] = priority
    if timeout is not None:
        found["timeout_ms"] = milliseconds(f"{what}(timeout=)", timeout)
    if not boolean(f"{what}(enabled=)", enabled):
        found["enabled"] = False
    return found


def _json(what: str, field: str, value: object) -> str:
    import json  # noqa: PLC0415 - slow to import, and few have configuration

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        problem = f"{what}(config=) has a value for {field} that is no JSON: {error}"
        raise TypeError(problem) from None
