"""The entry in the manifest of an asset that a function makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servo.dependencies import shown
from servo.errors import DeclarationError
from servo.functions import first_paragraph
from servo.parameters import config_entry, resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.asset_spec import AssetSpec
    from servo.dependencies import Dep
    from servo.functions import Declared
    from servo.manifest import ManifestContext


def asset_entry(
    spec: AssetSpec, declared: Declared, deps: Sequence[Dep], context: ManifestContext
) -> dict[str, object]:
    """Put together what is said of an asset, its function, and what the function's parameters say.

    Args:
        spec: What is said of the asset.
        declared: The function that makes it.
        deps: The dependencies of the function, as declared.
        context: How the project writes paths and code versions.
    """
    found = spec.to_manifest()
    if spec.retry is not None:
        try:
            found["retry"] = spec.retry.to_manifest(declared.plain.__globals__)
        except LookupError as error:
            message = f"{shown(spec.key)}: retry=: {error.args[0]}"
            raise DeclarationError(declared.location, message) from None
    found["location"] = declared.location.to_manifest(context)
    found["function"] = declared.name
    if "description" not in found and (description := first_paragraph(declared.function)):
        found["description"] = description
    if "code_version" not in found:
        found["code_version"] = context.code_version(declared.function)
    inputs = resolve(declared, deps, context)
    if inputs.deps:
        found["deps"] = inputs.deps
    if (config := config_entry(inputs, context)) is not None:
        found["config"] = config
    if inputs.resources:
        found["resources"] = sorted(set(inputs.resources.values()))
    return found
