"""Several assets that one function makes."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from servo.arguments import boolean, sequence, wrong
from servo.asset_entries import asset_entry
from servo.asset_spec import AssetSpec
from servo.dependencies import shown
from servo.functions import Declared
from servo.location import Location, here
from servo.parameters import add_mapping, check_deps
from servo.registry import current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from servo.attributes import Attributes
    from servo.dependencies import Dep
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")


class Output:
    """One of the assets that a function makes."""

    __slots__ = ("_multi", "declared", "function_deps", "spec")

    def __init__(
        self, spec: AssetSpec, shared: AssetSpec, declared: Declared, multi: dict[str, object]
    ) -> None:
        """Take what is said of this output and of all of them, the function, and its manifest entry."""
        self.spec = spec.within(shared)
        self.declared = declared
        self.function_deps: Sequence[Dep] = shared.deps or ()
        self._multi = multi

    @property
    def key(self) -> str:
        """The canonical key, as the user wrote it."""
        return self.spec.key

    @property
    def location(self) -> Location:
        """Where it is declared."""
        return self.declared.location

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        found = asset_entry(self.spec, self.declared, self.function_deps, context)
        found["multi"] = self._multi
        if self.spec.deps is not None and self.spec.deps != self.function_deps:
            found["deps"] = [_narrowed(dep, found.get("deps", [])) for dep in self.spec.deps]  # type: ignore[arg-type]
            if not found["deps"]:
                del found["deps"]
        return found

    def __repr__(self) -> str:
        return f"<output {self.key}>"


class MultiAsset(Generic[P, R]):
    """The assets that a function makes, and still the function: call it as such in tests."""

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], outputs: tuple[Output, ...]) -> None:
        """Take the function and what it makes."""
        update_wrapper(self, function)
        self.outputs = outputs

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<assets {', '.join(output.key for output in self.outputs)}>"


def multi_asset(
    *, outputs: Sequence[AssetSpec], can_subset: bool = False, **shared: Unpack[Attributes]
) -> Callable[[Callable[P, R]], MultiAsset[P, R]]:
    """Declare that a function makes several assets.

    Args:
        outputs: What it makes. An output without `deps` depends on all that the function does.
        can_subset: Whether the function can make some of them without the others.
        **shared: As of `asset`, for every output that does not say otherwise.

    >>> from servo.registry import collecting
    >>> with collecting():
    ...     @multi_asset(outputs=[AssetSpec("split.early"), AssetSpec("split.late")], group="split")
    ...     def split(delays):
    ...         return [d for d in delays if d <= 0], [d for d in delays if d > 0]
    >>> split
    <assets split/early, split/late>
    >>> split([1, -1])
    ([-1], [1])
    """
    location = here()
    specs = sequence(
        "multi_asset(outputs=)", outputs, 'a list of AssetSpec, such as [AssetSpec("clean.flights")]'
    )
    boolean("multi_asset(can_subset=)", can_subset)

    def declare(function: Callable[P, R]) -> MultiAsset[P, R]:
        declared = Declared("@multi_asset", function, location)
        common = AssetSpec(f"of {function.__qualname__}", **shared)
        check_deps(f"multi_asset {function.__qualname__}", declared, common.deps or ())
        found: list[Output] = []
        for spec in specs:
            if not isinstance(spec, AssetSpec):
                raise wrong("each of multi_asset(outputs=)", spec, 'AssetSpec("clean.flights") or the like')
            check_deps(shown(spec.key), declared, spec.deps or ())
            # A function that is made in a loop has the same name every time, but other outputs.
            multi: dict[str, object] = {
                "can_subset": can_subset,
                "first": found[0].key if found else spec.key,
            }
            found.append(Output(spec, common, declared, multi))
        current().assets.extend(found)
        return MultiAsset(function, tuple(found))

    return declare


def _narrowed(dep: Dep, of_function: list[dict[str, object]]) -> dict[str, object]:
    """Give a dependency of an output, with what the function says of the same asset or parameter."""
    entry: dict[str, object] = {}
    for known in of_function:
        is_named_so = "asset" not in known and known["parameter"] == dep.name
        is_same = is_named_so or (dep.asset is not None and known.get("asset") == dep.asset)
        if known.get("parameter") == dep.parameter if dep.parameter is not None else is_same:
            entry = dict(known)
            break
    if dep.asset is not None:
        entry["asset"] = dep.asset
    if dep.parameter is not None:
        entry["parameter"] = dep.parameter
    add_mapping(entry, dep)
    return entry
