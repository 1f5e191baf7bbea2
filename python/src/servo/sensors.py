"""Sensors: functions that look for something new, or are told of it, and request runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, overload

from servo.arguments import boolean, sequence, text, wrong
from servo.dependencies import key_of
from servo.durations import milliseconds
from servo.functions import plain_function
from servo.location import here
from servo.registry import current
from servo.run_sources import DecoratingSource, RunSource, options
from servo.secret_refs import SecretRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from servo.dependencies import AssetLike
    from servo.durations import Duration

P = ParamSpec("P")
R = TypeVar("R")

RunStatus = Literal["SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"]
Signature = Literal["github", "stripe"]

_INTERVAL_MS: Final = 30_000
_STATUSES: Final = ("SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT")


class Sensor(RunSource):
    """A sensor; made by `sensor`, `push_sensor`, `asset_sensor` and `run_status_sensor`."""

    kind = "sensor"


class WatchingSensor(DecoratingSource, Sensor):
    """A sensor that is told of assets or runs. Decorate a function with it to decide what it requests."""

    decorator = "asset_sensor"


@overload
def sensor(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def sensor(
    *,
    interval: Duration = ...,
    selection: str | None = ...,
    name: str | None = ...,
    description: str | None = ...,
    tags: Mapping[str, str] | None = ...,
    config: Mapping[str, object] | None = ...,
    priority: int = ...,
    timeout: Duration | None = ...,
    enabled: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def sensor(  # noqa: PLR0913 - each is named
    function: Callable[..., Any] | None = None,
    /,
    *,
    interval: Duration = "30s",
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    timeout: Duration | None = None,
    enabled: bool = True,
) -> object:
    """Declare that a function looks for something new. The function stays as it is.

    It is given `ctx` and resources by name, and returns `RunRequest`, a list of them, `SensorResult` with a
    cursor, `SkipReason` or nothing.

    Args:
        function: The function, when used without parentheses.
        interval: How long after one evaluation the next one starts.
        selection: What it may request, such as `raw.flights`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the docstring, unless given.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        timeout: The longest that one call may take; 60 seconds, unless given.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @sensor(interval="1m", selection="raw.flights")
    ...     def inbox(ctx): ...
    >>> found.sensors
    [<sensor inbox>]
    """
    said = options(
        "sensor",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    interval_ms = milliseconds("sensor(interval=)", interval)
    if interval_ms != _INTERVAL_MS:
        said["interval_ms"] = interval_ms
    declare = _declaring("sensor", name, said)
    return declare if function is None else declare(function)


@overload
def push_sensor(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def push_sensor(
    *,
    selection: str | None = ...,
    name: str | None = ...,
    description: str | None = ...,
    tags: Mapping[str, str] | None = ...,
    config: Mapping[str, object] | None = ...,
    priority: int = ...,
    timeout: Duration | None = ...,
    secret: SecretRef | None = ...,
    signature: Signature | None = ...,
    enabled: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def push_sensor(  # noqa: PLR0913 - each is named
    function: Callable[..., Any] | None = None,
    /,
    *,
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    timeout: Duration | None = None,
    secret: SecretRef | None = None,
    signature: Signature | None = None,
    enabled: bool = True,
) -> object:
    """Declare that a function is called with messages that are sent to it. The function stays as it is.

    It is given `ctx`, `message` and resources by name, and returns what the function of `sensor` does. A
    message counts once by its id. `POST /api/v1/orchestration/sensors/NAME/push` takes messages.

    Args:
        function: The function, when used without parentheses.
        selection: What it may request, such as `raw.flights`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the docstring, unless given.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        timeout: The longest that one call may take; 60 seconds, unless given.
        secret: What senders must know; without `signature`, they show it as `Authorization: Bearer`.
        signature: How senders sign with the secret instead: `github` or `stripe`.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @push_sensor
    ...     def uploaded(ctx, message): ...
    >>> found.sensors
    [<sensor uploaded>]
    """
    said = options(
        "push_sensor",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    said["push"] = True
    if secret is not None or signature is not None:
        said["verify"] = _verify(secret, signature)
    declare = _declaring("push_sensor", name, said)
    return declare if function is None else declare(function)


def asset_sensor(  # noqa: PLR0913 - each is named
    *,
    on: Sequence[AssetLike] | AssetLike,
    all_of: bool = False,
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    timeout: Duration | None = None,
    enabled: bool = True,
) -> WatchingSensor:
    """Declare a sensor that is told when assets are materialized, at once.

    By itself it requests its selection, in the partition that was made; decorate a function to decide. The
    function is given `ctx` and `message`, whose `data` has `asset`, `partition`, `materialization_id` and
    `run_id`.

    Args:
        on: The assets.
        all_of: Whether it waits until all of them were made since it last requested something; of assets with
            partitions, of the same partition.
        selection: What it requests, such as `reports.*`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the function's docstring, unless given.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        timeout: The longest that one call of the function may take; 60 seconds, unless given.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     both = asset_sensor(name="both", on=["raw.a", "raw.b"], all_of=True, selection="mart.*")
    >>> found.sensors
    [<sensor both>]
    """
    said = options(
        "asset_sensor",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    one = isinstance(on, str) or not isinstance(on, list | tuple)
    assets = [on] if one else list(sequence("asset_sensor(on=)", on, "a list of assets"))
    if not assets:
        raise wrong("asset_sensor(on=)", on, 'assets, such as ["raw.flights"]')
    said["on"] = [key_of("asset_sensor(on=)", each) for each in assets]
    if boolean("asset_sensor(all_of=)", all_of):
        said["all_of"] = True
    return _watching("asset_sensor", name, said)


def run_status_sensor(  # noqa: PLR0913 - each is named
    *,
    status: RunStatus | Sequence[RunStatus] = "FAILED",
    selection: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    timeout: Duration | None = None,
    enabled: bool = True,
) -> WatchingSensor:
    """Declare a sensor that is told when runs end, at once. Runs that it has requested itself do not count.

    By itself it requests its selection; decorate a function to decide. The function is given `ctx` and
    `message`, whose `data` has `run_id`, `status`, `selection`, `source` and `tags`.

    Args:
        status: How they end: `SUCCEEDED`, `FAILED`, `CANCELLED`, `TIMED_OUT`, one or several.
        selection: What it requests, such as `reports.*`.
        name: The name; the function's, unless given.
        description: For people; the first paragraph of the function's docstring, unless given.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        timeout: The longest that one call of the function may take; 60 seconds, unless given.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     @run_status_sensor(status="FAILED")
    ...     def failed(ctx, message): ...
    >>> found.sensors
    [<sensor failed>]
    """
    said = options(
        "run_status_sensor",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    statuses = [status] if isinstance(status, str) else list(status)
    for each in statuses:
        if each not in _STATUSES:
            raise wrong("run_status_sensor(status=)", each, f"one of {', '.join(_STATUSES)}")
    said["run_status"] = statuses
    return _watching("run_status_sensor", name, said)


def _verify(secret: object, signature: object) -> dict[str, object]:
    if not isinstance(secret, SecretRef):
        # The value may be the secret itself, so it is not shown.
        problem = f'takes a reference, such as SecretRef.env("HOOK_SECRET"), not a {type(secret).__name__}'
        raise TypeError(f"push_sensor(secret=) {problem}: never write a secret into code")
    if signature not in {None, "github", "stripe"}:
        raise wrong("push_sensor(signature=)", signature, '"github" or "stripe"')
    place = {"name": "secret", "provider": secret.provider, "path": secret.path}
    return {"scheme": signature or "token", "secret": place}


def _watching(what: str, name: str | None, said: dict[str, object]) -> WatchingSensor:
    if name is not None:
        text(f"{what}(name=)", name, "ready")
    found = WatchingSensor(here(), name, None, **said)
    current().sensors.append(found)
    return found


def _declaring(
    what: str, name: str | None, said: dict[str, object]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    location = here()
    if name is not None:
        text(f"{what}(name=)", name, "inbox")

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        plain_function(f"@{what}", function)
        current().sensors.append(Sensor(location, name, function, **said))
        return function

    return declare
