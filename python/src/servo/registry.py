"""The declarations of a project, in their order.

Decorators add to the current registry. The process has one; a scan and a test collect into their own:

>>> import servo
>>> with collecting() as found:
...     asset = servo.external("raw.flights")
>>> [each.key for each in found.assets]
['raw/flights']
>>> asset in current().assets
False
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servo.asset_checks import AssetCheck
    from servo.location import Location
    from servo.manifest import ManifestContext
    from servo.notifications import Notification
    from servo.resources import RegisteredResource
    from servo.schedules import Schedule
    from servo.sensors import Sensor


class AssetDefinition(Protocol):
    """An asset as the manifest sees it: made by a function, one of several of a function, or external."""

    @property
    def key(self) -> str:
        """The canonical key, as the user wrote it."""

    @property
    def location(self) -> Location:
        """Where it is declared."""

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""


class Registry:
    """The definitions of a project."""

    __slots__ = ("assets", "checks", "notifications", "resources", "schedules", "sensors")

    def __init__(self) -> None:
        """Start empty."""
        self.assets: list[AssetDefinition] = []
        self.checks: list[AssetCheck] = []
        self.schedules: list[Schedule] = []
        self.sensors: list[Sensor] = []
        self.notifications: list[Notification] = []
        self.resources: list[RegisteredResource] = []

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in self.__slots__)
        return f"<registry of {counts}>"


_current = Registry()


def current() -> Registry:
    """Give the registry that declarations are added to."""
    return _current


@contextmanager
def collecting() -> Iterator[Registry]:
    """Collect the declarations of a `with` block into a registry of their own.

    >>> with collecting() as found:
    ...     pass
    >>> found
    <registry of 0 assets, 0 checks, 0 notifications, 0 resources, 0 schedules, 0 sensors>
    """
    global _current  # noqa: PLW0603 - decorators have no other way to be told
    outer = _current
    _current = Registry()
    try:
        yield _current
    finally:
        _current = outer
