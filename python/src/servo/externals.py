"""Assets that are made elsewhere, declared so that others can depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.asset_spec import AssetSpec
from servo.location import Location, here
from servo.registry import current

if TYPE_CHECKING:
    from typing import Unpack

    from servo.attributes import Attributes
    from servo.keys import AssetKey
    from servo.manifest import ManifestContext


class ExternalAsset:
    """An asset that is made elsewhere; made by `external`."""

    __slots__ = ("location", "spec")

    def __init__(self, spec: AssetSpec, location: Location) -> None:
        """Take what is said of the asset, and where."""
        self.spec = spec
        self.location = location

    @property
    def key(self) -> str:
        """The canonical key, as the user wrote it."""
        return self.spec.key

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        found = self.spec.to_manifest()
        # What Servo does not run has no code to have a version of.
        found.pop("code_version", None)
        found["location"] = self.location.to_manifest(context)
        found["external"] = True
        deps = [
            {"asset": dep.asset, **({"mapping": dep.mapping.to_manifest()} if dep.mapping else {})}
            for dep in self.spec.deps or ()
        ]
        if deps:
            found["deps"] = deps
        return found

    def __repr__(self) -> str:
        return f"<external asset {self.key}>"


def external(asset: AssetSpec | str | AssetKey, **attributes: Unpack[Attributes]) -> ExternalAsset:
    """Declare an asset that is made elsewhere.

    Args:
        asset: Its key, or all that is said of it.
        **attributes: As of `asset`; only with a key.

    >>> from servo.registry import collecting
    >>> with collecting():
    ...     external("raw.weather", description="Hourly, from the airports")
    <external asset raw/weather>
    """
    if isinstance(asset, AssetSpec):
        if attributes:
            raise TypeError(
                f"external(): say {', '.join(attributes)} in AssetSpec({asset.key!r}), not beside it"
            )
        spec = asset
    else:
        spec = AssetSpec(asset, **attributes)
    for dep in spec.deps or ():
        if dep.parameter is not None:
            raise TypeError(
                f"external asset {spec.key} has no function, so no parameter {dep.parameter}: leave it out"
            )
    found = ExternalAsset(spec, here())
    current().assets.append(found)
    return found
