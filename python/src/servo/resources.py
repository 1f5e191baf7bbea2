"""Resources: connections and clients that functions are given instead of making them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeVar

from servo.arguments import boolean, instance_of, text, wrong
from servo.frozen import Frozen
from servo.location import Location, here
from servo.registry import current
from servo.retry import Retry

if TYPE_CHECKING:
    from servo.manifest import ManifestContext

    Scope = Literal["runner", "task"]


class Resource:
    """The base of resources. A parameter that is annotated with a subclass is given the one registered.

    A worker sets a resource up when a task first needs it, keeps it for the tasks that follow in the same
    process, and tears it down at the end: with the methods `setup` and `teardown`, or as a context manager,
    whichever it has. What `__enter__` gives is what functions are given.

    A dataclass or a model of pydantic can be registered as a class; its fields are then set from
    `servo.toml`, `.env` and the environment (`servo.environment`).

    >>> class Warehouse(Resource):
    ...     def __init__(self, url: str) -> None:
    ...         self.url = url
    """

    name: ClassVar[str] = ""
    """The name that it is registered under; empty before that."""


class Secret(str):
    """A text that is not shown: the annotation of a field of a resource whose value is masked in all output.

    >>> Secret("hunter2"), str(Secret("hunter2")) == "hunter2"
    (Secret('***'), True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret('***')"


R = TypeVar("R")
OWN_FILES: Final = "files"
"""The `io` of assets that are stored in Servo's own files, whatever the default is."""


class RegisteredResource(Frozen):
    """A resource with its name and the place where it was registered."""

    __slots__ = ("default_io", "given", "location", "name", "retry", "scope")
    name: str
    given: Any
    """An instance, or the class to make one of."""
    location: Location
    scope: str
    """`runner`: one for the tasks of a process; `task`: one for each task."""
    retry: Retry | None
    """How often setting it up is tried."""
    default_io: bool
    """Whether it stores the assets that do not say otherwise."""

    def __init__(  # noqa: PLR0913 - all that is said of it
        self,
        name: str,
        given: object,
        location: Location,
        *,
        scope: str = "runner",
        retry: Retry | None = None,
        default_io: bool = False,
    ) -> None:
        """Take all of it."""
        self._set(name=name, given=given, location=location, scope=scope, retry=retry, default_io=default_io)

    @property
    def kind(self) -> type:
        """Its class."""
        return self.given if isinstance(self.given, type) else type(self.given)

    def to_manifest(self, _context: ManifestContext) -> dict[str, object]:
        """Give name and type as the manifest has them."""
        return {"name": self.name, "type": f"{self.kind.__module__}.{self.kind.__qualname__}"}


def resource(
    name: str,
    given: R,
    *,
    scope: Scope = "runner",
    retry: Retry | None = None,
    default_io: bool = False,
) -> R:
    """Register a resource under a name, and give it back.

    Args:
        name: The name; a parameter with this name is given it.
        given: An instance; or a class, a dataclass or a model of pydantic, whose fields are set from
            `[resources.NAME]` in `servo.toml` and from the environment.
        scope: Whether one serves the tasks of a process one after the other (`runner`), or each task has its
            own, torn down at its end (`task`).
        retry: How often, and after which waits, setting it up is tried; once, unless given.
        default_io: Whether it stores all assets that do not say `io=`, as an `IOManager`.

    >>> from servo.registry import collecting
    >>> class Warehouse(Resource):
    ...     pass
    >>> with collecting() as found:
    ...     warehouse = resource("warehouse", Warehouse())
    >>> warehouse.name, len(found.resources)
    ('warehouse', 1)
    """
    text("resource(name)", name, "warehouse")
    if name == OWN_FILES:
        raise ValueError(f'resource("{name}"): io="{name}" means the files of Servo: take another name')
    if not _is_resource(given):
        wanted = (
            "a dataclass, a model of pydantic, or a class that is based on servo.Resource, or one of these"
        )
        raise wrong(f'resource("{name}")', given, wanted)
    if scope not in {"runner", "task"}:
        raise wrong(f'resource("{name}", scope=)', scope, '"runner" or "task"')
    if retry is not None:
        instance_of(Retry, "servo.Retry(max_attempts=3)")(f'resource("{name}", retry=)', retry)
    boolean(f'resource("{name}", default_io=)', default_io)
    if not isinstance(given, type):
        set_name(given, name)
    current().resources.append(
        RegisteredResource(name, given, here(), scope=scope, retry=retry, default_io=default_io)
    )
    return given


def set_name(instance: object, name: str) -> None:
    """Tell a resource its name, unless it has a field of its own for that."""
    fields = getattr(type(instance), "__dataclass_fields__", getattr(type(instance), "model_fields", {}))
    if isinstance(instance, Resource) and "name" not in fields:
        object.__setattr__(instance, "name", name)


def _is_resource(given: object) -> bool:
    kind = given if isinstance(given, type) else type(given)
    return (
        issubclass(kind, Resource) or hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_validate")
    )


def resource_name(argument: str, value: object) -> str:
    """Give the name of a resource that is named, or passed itself.

    >>> resource_name("io=", "warehouse")
    'warehouse'
    """
    if isinstance(value, str):
        return value
    for registered in reversed(current().resources):
        if registered.given is value:
            return registered.name
    if isinstance(value, Resource) and value.name:
        return value.name
    raise wrong(
        argument, value, 'the name of a resource, such as "warehouse", or what servo.resource(…) gave'
    )
