"""Shared by tests of declarations: the manifest of what a test declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.manifest import ManifestContext, build

if TYPE_CHECKING:
    from collections.abc import Callable

    from servo.registry import Registry


def manifest_of(found: Registry) -> dict[str, Any]:
    """Give the manifest of what was collected, with every file called test.py and every version v."""
    return build(found, "test", ManifestContext(lambda _file: "test.py", lambda _function: "v"))


def assets_of(found: Registry) -> dict[str, dict[str, Any]]:
    """Give the assets of the manifest, by key."""
    return {asset["key"]: asset for asset in manifest_of(found)["assets"]}


def only_asset(found: Registry) -> dict[str, Any]:
    """Give the one asset that was declared."""
    (asset,) = assets_of(found).values()
    return asset


def later(make: Callable[..., object], *args: object, **options: object) -> Callable[[], object]:
    """Make a call that type checkers would refuse."""
    return lambda: make(*args, **options)
