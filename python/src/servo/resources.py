"""Resources: connections and clients that functions are given instead of making them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from servo.arguments import text, wrong
from servo.frozen import Frozen
from servo.location import Location, here
from servo.registry import current

if TYPE_CHECKING:
    from servo.manifest import ManifestContext


class Resource:
    """The base of resources. A parameter that is annotated with a subclass is given the one registered.

    A worker sets a resource up when a task first needs it, keeps it for the tasks that follow in the same
    process, and tears it down at the end: with the methods `setup` and `teardown`, or as a context manager,
    whichever it has. What `__enter__` gives is what functions are given.

    >>> class Warehouse(Resource):
    ...     def __init__(self, url: str) -> None:
    ...         self.url = url
    """

    name: str = ""
    """The name that it is registered under; empty before that."""


R = TypeVar("R", bound=Resource)


class RegisteredResource(Frozen):
    """A resource with its name and the place where it was registered."""

    __slots__ = ("instance", "location", "name")
    name: str
    instance: Resource
    location: Location

    def __init__(self, name: str, instance: Resource, location: Location) -> None:
        """Take all three."""
        self._set(name=name, instance=instance, location=location)

    def to_manifest(self, _context: ManifestContext) -> dict[str, object]:
        """Give name and type as the manifest has them."""
        kind = type(self.instance)
        return {"name": self.name, "type": f"{kind.__module__}.{kind.__qualname__}"}


def resource(name: str, instance: R) -> R:
    """Register a resource under a name, and give it back.

    >>> from servo.registry import collecting
    >>> class Warehouse(Resource):
    ...     pass
    >>> with collecting() as found:
    ...     warehouse = resource("warehouse", Warehouse())
    >>> warehouse.name, len(found.resources)
    ('warehouse', 1)
    """
    text("resource(name)", name, "warehouse")
    given: object = instance
    if not isinstance(given, Resource):
        fix = "make it an instance, as in resource(name, Warehouse(…))" if isinstance(given, type) else None
        error = wrong(f'resource("{name}")', given, "an instance of a class that is based on servo.Resource")
        raise TypeError(f"{error}: {fix}") if fix else error
    object.__setattr__(instance, "name", name)
    current().resources.append(RegisteredResource(name, instance, here()))
    return instance


def resource_name(argument: str, value: object) -> str:
    """Give the name of a resource that is named, or passed itself.

    >>> resource_name("io=", "warehouse")
    'warehouse'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Resource) and value.name:
        return value.name
    raise wrong(
        argument, value, 'the name of a resource, such as "warehouse", or what servo.resource(…) gave'
    )
