"""Types of the keyword arguments of `asset`, `AssetSpec` and kin, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from servo.checks import Check
    from servo.compute import Compute
    from servo.conditions import Condition
    from servo.dependencies import AssetLike, Dep
    from servo.durations import Duration
    from servo.freshness import Freshness
    from servo.keys import AssetKey
    from servo.multi_assets import MultiAsset
    from servo.partitions import Partitions
    from servo.resources import Resource
    from servo.retry import Retry
    from servo.secret_refs import SecretRef


class Attributes(TypedDict, total=False):
    """Keyword arguments; each may be None, which is as good as leaving it out."""

    deps: Sequence[AssetLike | Dep | MultiAsset[..., Any]] | None
    partitions: Partitions | None
    single_call: bool | None
    checks: Sequence[Check] | None
    retry: Retry | None
    freshness: Freshness | None
    expires_after: Duration | None
    renamed_from: str | AssetKey | None
    automation: Condition | None
    timeout: Duration | None
    tags: Mapping[str, str] | None
    owners: Sequence[str] | None
    group: str | None
    kind: str | Sequence[str] | None
    description: str | None
    code_version: str | None
    compute: Compute | None
    priority: int | None
    queue: str | None
    pool: str | None
    isolation: Literal["shared", "process"] | None
    quarantine: bool | None
    secrets: Mapping[str, SecretRef] | None
    io: str | Resource | None
    metadata: Mapping[str, str] | None
    on_success: Callable[..., object] | None
    on_failure: Callable[..., object] | None
