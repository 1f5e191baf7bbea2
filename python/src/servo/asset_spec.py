"""Declared properties of an asset, independent of how it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from servo.arguments import boolean, instance_of, integer, text, text_map, texts, unexpected, wrong
from servo.checks import Check, check_list
from servo.compute import Compute
from servo.conditions import Condition
from servo.dependencies import Dep, dep_list, key_of, shown
from servo.durations import milliseconds
from servo.freshness import Freshness
from servo.frozen import Frozen
from servo.partitions import Partitions
from servo.resources import resource_name
from servo.retry import Retry
from servo.secret_refs import SecretRef, secret_refs

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from servo.attributes import Attributes
    from servo.keys import AssetKey


def _text(example: str) -> Callable[[str, object], str]:
    return lambda argument, value: text(argument, value, example)


def _kinds(argument: str, value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else texts(argument, value, "python")


def _isolation(argument: str, value: object) -> str:
    if value not in {"shared", "process"}:
        raise wrong(argument, value, '"shared" or "process"')
    return str(value)


def _function(argument: str, value: object) -> object:
    if not callable(value) or not hasattr(value, "__code__"):
        raise wrong(argument, value, "a function of ctx, and of error if it has failed")
    return value


_any_partitions: Final = instance_of(Partitions, 'partitions, such as DailyPartitions(start="2013-01-01"),')


def _partitions(argument: str, value: object) -> Partitions:
    if isinstance(value, dict):
        raise wrong(argument, value, "servo.MultiPartitions({…}) for several dimensions")
    return _any_partitions(argument, value)


# What people look for in arguments, and where it is.
_MEANT_OTHERWISE: Final = {
    "config": "annotate a parameter of the function with a class of its fields, a servo.Config",
    "io_manager": "name a resource that stores its data with io=",
    "resources": "give the function a parameter with the name of the resource",
    "schedule": "declare servo.schedule(cron=…, selection=…), or give it automation=",
}


# By argument: the part of the spec that it becomes, its default, and how it is checked.
_ATTRIBUTES: Final[dict[str, tuple[str, object, Callable[[str, object], object]]]] = {
    "deps": ("deps", None, dep_list),
    "partitions": (
        "partitions",
        None,
        _partitions,
    ),
    "single_call": ("single_call", False, boolean),
    "checks": ("checks", (), check_list),
    "retry": ("retry", None, instance_of(Retry, "servo.Retry(max_attempts=3)")),
    "freshness": ("freshness", None, instance_of(Freshness, 'servo.Freshness(max_lag="26h")')),
    "expires_after": ("expires_after_ms", None, milliseconds),
    "renamed_from": ("renamed_from", None, key_of),
    "automation": ("automation", None, instance_of(Condition, "servo.eager()")),
    "timeout": ("timeout_ms", None, milliseconds),
    "tags": ("tags", {}, text_map),
    "owners": ("owners", (), lambda argument, value: texts(argument, value, "ops@example.org")),
    "group": ("group", None, _text("reporting")),
    "kind": ("kinds", (), _kinds),
    "description": ("description", None, _text("Delays by carrier")),
    "code_version": ("code_version", None, _text("2")),
    "compute": ("compute", None, instance_of(Compute, 'servo.Compute(memory="2GiB")')),
    "priority": ("priority", 0, integer),
    "queue": ("queue", None, _text("gpu")),
    "pool": ("pool", None, _text("warehouse")),
    "isolation": ("isolation", "shared", _isolation),
    "quarantine": ("quarantine", False, boolean),
    "secrets": ("secrets", {}, secret_refs),
    "io": ("io", None, resource_name),
    "metadata": ("metadata", {}, text_map),
    "on_success": ("on_success", None, _function),
    "on_failure": ("on_failure", None, _function),
}
_DEFAULTS: Final = {part: default for part, default, _ in _ATTRIBUTES.values()}


def _secrets(secrets: dict[str, SecretRef]) -> list[dict[str, str]]:
    return [
        {"name": name, "provider": reference.provider, "path": reference.path}
        for name, reference in sorted(secrets.items())
    ]


# How parts that are no plain data are written.
_WRITERS: Final[dict[str, Callable[[Any], object]]] = {
    "partitions": lambda partitions: partitions.to_manifest(),
    "checks": lambda checks: [check.to_manifest() for check in checks],
    "freshness": Freshness.to_manifest,
    "automation": Condition.to_manifest,
    "compute": Compute.to_manifest,
    "owners": list,
    "kinds": list,
    "secrets": _secrets,
}


_ELSEWHERE: Final = frozenset({"deps", "retry", "on_success", "on_failure"})
"""Parts that the manifest does not have, or only once the function and its module are known."""


class AssetSpec(Frozen):
    """Declared properties of an asset: plain data, an output of `@multi_asset` or an argument of `external`.

    >>> spec = AssetSpec("raw.flights", group="raw", timeout="10m")
    >>> spec.key, spec.timeout_ms
    ('raw/flights', 600000)
    """

    __slots__ = ("key", *_DEFAULTS, "given")
    key: str
    """Canonical; as the user wrote it, valid or not."""
    deps: tuple[Dep, ...] | None
    partitions: Partitions | None
    single_call: bool
    checks: tuple[Check, ...]
    retry: Retry | None
    freshness: Freshness | None
    expires_after_ms: int | None
    renamed_from: str | None
    automation: Condition | None
    timeout_ms: int | None
    tags: dict[str, str]
    owners: tuple[str, ...]
    group: str | None
    kinds: tuple[str, ...]
    description: str | None
    code_version: str | None
    compute: Compute | None
    priority: int
    queue: str | None
    pool: str | None
    isolation: str
    quarantine: bool
    secrets: dict[str, SecretRef]
    io: str | None
    metadata: dict[str, str]
    on_success: Callable[..., object] | None
    on_failure: Callable[..., object] | None
    given: dict[str, object]
    """The parts that were given, by name."""

    def __init__(self, key: str | AssetKey, **attributes: Unpack[Attributes]) -> None:
        """Take the key and any of the arguments that `asset` describes."""
        canonical = key_of("AssetSpec(key)", key)
        given: dict[str, object] = {}
        for argument, value in attributes.items():
            if argument not in _ATTRIBUTES:
                if argument in _MEANT_OTHERWISE:
                    message = f"{shown(canonical)} has no argument {argument}=: {_MEANT_OTHERWISE[argument]}"
                    raise TypeError(message)
                raise unexpected(shown(canonical), argument, ("name", "namespace", "key", *_ATTRIBUTES))
            if value is None:
                continue
            part, _, check = _ATTRIBUTES[argument]
            try:
                given[part] = check(f"{argument}=", value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{shown(canonical)}: {error}") from None
        self._set(key=canonical, given=given, **{**_DEFAULTS, **given})

    def within(self, shared: AssetSpec) -> AssetSpec:
        """Give this spec with the parts of another where it has none itself."""
        merged = AssetSpec(self.key)
        given = {**shared.given, **self.given}
        merged._set(given=given, **given)
        return merged

    def to_manifest(self) -> dict[str, object]:
        """Give what is said as the manifest has it: without place, function and what parameters say."""
        found: dict[str, object] = {"key": self.key}
        for part, value in self.given.items():
            if part not in _ELSEWHERE and value != _DEFAULTS[part]:
                written = _WRITERS[part](value) if part in _WRITERS else value
                if written != {}:
                    found[part] = written
        return found

    def __hash__(self) -> int:
        return hash(self.key)
