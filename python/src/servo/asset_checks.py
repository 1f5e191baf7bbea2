"""Checks that a function makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from servo.checks import Check
from servo.dependencies import key_of
from servo.errors import DeclarationError
from servo.functions import first_paragraph, function_name, parameters_of, plain_function
from servo.location import Location, here
from servo.parameters import resource_parameters
from servo.registry import current

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from servo.checks import CheckOptions
    from servo.dependencies import AssetLike
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")


class AssetCheck:
    """A check of an asset that a function makes."""

    __slots__ = ("asset", "check", "function", "location")

    def __init__(self, asset: str, check: Check, function: Callable[..., object], location: Location) -> None:
        """Take the canonical key of the asset, what is said of the check, its function, and where."""
        self.asset = asset
        self.check = check
        self.function = function
        self.location = location

    @property
    def name(self) -> str:
        """The name of the check, unique within its asset."""
        return self.check.name

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry among the checks of its asset."""
        self._check_parameters(context)
        found = self.check.to_manifest()
        found["location"] = self.location.to_manifest(context)
        found["function"] = function_name(self.function)
        if "description" not in found and (description := first_paragraph(self.function)):
            found["description"] = description
        return found

    def _check_parameters(self, context: ManifestContext) -> None:
        """Refuse parameters that a check is given nothing for."""
        plain = plain_function("@asset_check", self.function)
        parameters, optional = parameters_of("@asset_check", plain)
        resources = resource_parameters(plain, context.resources)
        others = [each for each in parameters if each not in resources and each not in {"ctx", "context"}]
        unknown = [each for each in others[1:] if each not in optional]
        missing = [name for name in resources.values() if name not in context.resources]
        if unknown or missing:
            known = ", ".join(sorted(context.resources)) or "none"
            what = f"its parameter {unknown[0]}" if unknown else f"the resource {missing[0]}"
            problem = f"a check is given the value, ctx and resources, and there is nothing for {what}"
            raise DeclarationError(self.location, f"check {self.name}: {problem}: there is {known}")

    def __repr__(self) -> str:
        return f"<check {self.name} of {self.asset}>"


def asset_check(
    *, asset: AssetLike, **options: Unpack[CheckOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare that a function checks an asset. The function stays as it is.

    Args:
        asset: The asset, or its key.
        **options: `name` (the function's, unless given), `severity` (info, warning, error or critical),
            `phase` ("pre": before the asset is made), `blocking`, `timeout` and `description`.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @asset_check(asset="raw.flights", severity="warning")
    ...     def carriers_are_known(flights):
    ...         return "ZZ" not in flights
    >>> found.checks
    [<check carriers_are_known of raw/flights>]
    """
    location = here()
    if isinstance(outputs := getattr(asset, "outputs", None), tuple):
        raise TypeError(
            f"@asset_check(asset=): {asset!r} are {len(outputs)} assets: give the key of one of them"
        )
    key = key_of("@asset_check(asset=)", asset)

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        name = plain_function("@asset_check", function).__name__
        check = Check("python", name, {}, options)
        current().checks.append(AssetCheck(key, check, function, location))
        return function

    return declare
