"""Assets: data that a function makes."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from servo.arguments import text
from servo.asset_entries import asset_entry
from servo.asset_spec import AssetSpec
from servo.dependencies import shown
from servo.functions import Declared
from servo.location import Location, here
from servo.parameters import check_deps
from servo.registry import current

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from servo.attributes import Attributes
    from servo.keys import AssetKey
    from servo.manifest import ManifestContext

P = ParamSpec("P")
R = TypeVar("R")


class Asset(Generic[P, R]):
    """An asset, and still the function that makes it: call it as such in tests."""

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], spec: AssetSpec, location: Location) -> None:
        """Take the function, what is said of the asset, and where."""
        declared = Declared("@asset", function, location)
        check_deps(shown(spec.key), declared, spec.deps or ())
        update_wrapper(self, function)
        self.spec = spec
        self.declared = declared

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.__wrapped__(*args, **kwargs)

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
        return asset_entry(self.spec, self.declared, self.spec.deps or (), context)

    def __repr__(self) -> str:
        return f"<asset {self.key}>"


@overload
def asset(function: Callable[P, R], /) -> Asset[P, R]: ...


@overload
def asset(
    *,
    name: str | None = None,
    namespace: str | None = None,
    key: str | AssetKey | None = None,
    **attributes: Unpack[Attributes],
) -> Callable[[Callable[P, R]], Asset[P, R]]: ...


def asset(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    namespace: str | None = None,
    key: str | AssetKey | None = None,
    **attributes: Unpack[Attributes],
) -> object:
    """Declare that a function makes an asset.

    A parameter of the function is what its name or annotation says: `ctx` is the context, `config` the
    configuration, a resource has the name of one that is registered, and anything else that has no default is
    the asset with its name.

    Args:
        function: The function, when used without parentheses.
        name: The name of the asset; the function's, unless given.
        namespace: The namespace of the asset; `default`, unless given.
        key: Both at once, such as `raw.flights`.
        **attributes: What else is said of it, all of it optional:

            `deps`: what it depends on, in addition to its parameters;
            `partitions`: which partitions it has;
            `single_call`: whether one call makes all partitions that a run makes of it: the function finds
                them in `ctx.partitions`, and returns a dict with a value for each, or yields pairs;
            `checks`: checks of its data;
            `retry`, `timeout`: what to do about failing and slow attempts;
            `freshness`: how old it may become;
            `expires_after`: for how long what was made counts, such as `"30d"`; then it is missing again;
            `renamed_from`: the name that it had before; the deployment gives it what was made under that;
            `automation`: when it is made without anybody asking, such as `servo.eager()`;
            `description` (the docstring's first paragraph, unless given), `group`, `kind`, `owners`, `tags`,
            `metadata`: what people should know of it;
            `code_version`: changes when its code does; found from the source, unless given;
            `compute`, `priority`, `queue`, `pool`, `isolation`: where and when it runs; a pool is a name that
                assets share and that setting `pool.NAME` limits;
            `quarantine`: whether data that a check blocks is kept for review;
            `secrets`: secrets that it needs, by the name under which it finds them;
            `io`: the resource that stores what it returns;
            `on_success`, `on_failure`: functions that the worker calls when an attempt has ended.

    >>> from servo.registry import collecting
    >>> with collecting():
    ...     @asset(namespace="analytics", tags={"team": "ops"})
    ...     def delays(flights: list[int]) -> list[int]:
    ...         return [delay for delay in flights if delay > 0]
    >>> delays
    <asset analytics/delays>
    >>> delays([3, 0, 5])
    [3, 5]
    """
    location = here()

    def declare(function: Callable[P, R]) -> Asset[P, R]:
        found = Asset(function, AssetSpec(_key(function, name, namespace, key), **attributes), location)
        current().assets.append(found)
        return found

    return declare if function is None else declare(function)


def _key(function: Any, name: object, namespace: object, key: str | AssetKey | None) -> str | AssetKey:  # noqa: ANN401 - perhaps not a function
    if key is not None:
        if name is not None or namespace is not None:
            raise TypeError(f"asset {key}: give key=, or name= and namespace=, not both")
        return key
    named = getattr(function, "__name__", "") if name is None else text("asset(name=)", name, "flights")
    spaced = "default" if namespace is None else text("asset(namespace=)", namespace, "raw")
    return f"{spaced}/{named}"
