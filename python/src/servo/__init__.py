"""Servo keeps data assets up to date.

This package needs nothing but the standard library, and importing it has no side effects.

>>> import servo
>>> with servo.collecting() as found:
...     @servo.asset(namespace="raw")
...     def flights() -> list[int]:
...         return [3, 0, 5]
...
...     @servo.asset(namespace="analytics", checks=[servo.row_count(min=1)])
...     def delays(flights: list[int]) -> list[int]:
...         return [delay for delay in flights if delay > 0]
>>> found.assets
[<asset raw/flights>, <asset analytics/delays>]
>>> delays(flights())
[3, 5]
"""

from __future__ import annotations

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from servo.asset_checks import asset_check
    from servo.asset_spec import AssetSpec
    from servo.assets import Asset, asset
    from servo.checks import Check, accepted_values, fresh, not_null, row_count, schema, sql_check, unique
    from servo.client import AsyncClient, Client
    from servo.compute import Compute
    from servo.conditions import (
        Condition,
        all_upstream,
        any_upstream,
        at_most,
        code_changed,
        cron_tick,
        during,
        eager,
        failed,
        in_progress,
        latest,
        missing,
        new_partition,
        on_cron,
        on_missing,
        stale,
        updated,
    )
    from servo.config import Config
    from servo.context import Context, ScheduleContext, SensorContext
    from servo.dependencies import Dep, dep
    from servo.externals import ExternalAsset, external
    from servo.file_sensors import File, file_sensor
    from servo.freshness import Freshness
    from servo.in_memory import materialize
    from servo.keys import AssetKey, PartitionKey
    from servo.mappings import (
        PartitionMapping,
        all_partitions,
        available,
        dimension,
        last,
        per_dimension,
        same,
        specific,
        static_map,
        time_grain,
        window,
    )
    from servo.metadata import md, plot, table, url
    from servo.multi_assets import MultiAsset, multi_asset
    from servo.notifications import Command, Email, Slack, Webhook, notify
    from servo.partition import Partition, PartitionRange
    from servo.partition_batch import PartitionBatch
    from servo.partitions import (
        CronPartitions,
        DailyPartitions,
        DynamicPartitions,
        HourlyPartitions,
        MonthlyPartitions,
        MultiPartitions,
        Partitions,
        StaticPartitions,
        WeeklyPartitions,
    )
    from servo.registry import Registry, collecting
    from servo.requests import Message, RunRequest, SensorResult, SkipReason
    from servo.resources import Resource, Secret, resource
    from servo.results import CheckResult, Materialization, Output, PartitionFailures
    from servo.retry import Retry
    from servo.schedules import schedule
    from servo.secret_refs import SecretRef
    from servo.sensors import asset_sensor, push_sensor, run_status_sensor, sensor
    from servo.sql_assets import SqlAsset, sql_asset
    from servo.storage.manager import InputContext, IOManager, OutputContext

__version__ = "0.1.0"

__all__ = [
    "Asset",
    "AssetKey",
    "AssetSpec",
    "AsyncClient",
    "Check",
    "CheckResult",
    "Client",
    "Command",
    "Compute",
    "Condition",
    "Config",
    "Context",
    "CronPartitions",
    "DailyPartitions",
    "Dep",
    "DynamicPartitions",
    "Email",
    "ExternalAsset",
    "File",
    "Freshness",
    "HourlyPartitions",
    "IOManager",
    "InputContext",
    "Materialization",
    "Message",
    "MonthlyPartitions",
    "MultiAsset",
    "MultiPartitions",
    "Output",
    "OutputContext",
    "Partition",
    "PartitionBatch",
    "PartitionFailures",
    "PartitionKey",
    "PartitionMapping",
    "PartitionRange",
    "Partitions",
    "Registry",
    "Resource",
    "Retry",
    "RunRequest",
    "ScheduleContext",
    "Secret",
    "SecretRef",
    "SensorContext",
    "SensorResult",
    "SkipReason",
    "Slack",
    "SqlAsset",
    "StaticPartitions",
    "Webhook",
    "WeeklyPartitions",
    "__version__",
    "accepted_values",
    "all_partitions",
    "all_upstream",
    "any_upstream",
    "asset",
    "asset_check",
    "asset_sensor",
    "at_most",
    "available",
    "code_changed",
    "collecting",
    "cron_tick",
    "dep",
    "dimension",
    "during",
    "eager",
    "external",
    "failed",
    "file_sensor",
    "fresh",
    "in_progress",
    "last",
    "latest",
    "materialize",
    "md",
    "missing",
    "multi_asset",
    "new_partition",
    "not_null",
    "notify",
    "on_cron",
    "on_missing",
    "per_dimension",
    "plot",
    "push_sensor",
    "resource",
    "row_count",
    "run_status_sensor",
    "same",
    "schedule",
    "schema",
    "sensor",
    "specific",
    "sql_asset",
    "sql_check",
    "stale",
    "static_map",
    "table",
    "time_grain",
    "unique",
    "updated",
    "url",
    "window",
]

# Where each name is found. A worker imports this package many times a minute, and needs few of them.
_MODULES = {
    "asset_checks": "asset_check",
    "asset_spec": "AssetSpec",
    "assets": "Asset asset",
    "checks": "Check accepted_values fresh not_null row_count schema sql_check unique",
    "client": "AsyncClient Client",
    "compute": "Compute",
    "conditions": "Condition all_upstream any_upstream at_most code_changed cron_tick during eager failed "
    "in_progress latest missing new_partition on_cron on_missing stale updated",
    "config": "Config",
    "context": "Context ScheduleContext SensorContext",
    "dependencies": "Dep dep",
    "externals": "ExternalAsset external",
    "file_sensors": "File file_sensor",
    "freshness": "Freshness",
    "in_memory": "materialize",
    "keys": "AssetKey PartitionKey",
    "mappings": "PartitionMapping all_partitions available dimension last per_dimension same specific "
    "static_map time_grain window",
    "metadata": "md plot table url",
    "multi_assets": "MultiAsset multi_asset",
    "notifications": "Command Email Slack Webhook notify",
    "partition": "Partition PartitionRange",
    "partition_batch": "PartitionBatch",
    "partitions": "CronPartitions DailyPartitions DynamicPartitions HourlyPartitions MonthlyPartitions "
    "MultiPartitions Partitions StaticPartitions WeeklyPartitions",
    "registry": "Registry collecting",
    "requests": "Message RunRequest SensorResult SkipReason",
    "resources": "Resource Secret resource",
    "results": "CheckResult Materialization Output PartitionFailures",
    "retry": "Retry",
    "schedules": "schedule",
    "secret_refs": "SecretRef",
    "sensors": "asset_sensor push_sensor run_status_sensor sensor",
    "sql_assets": "SqlAsset sql_asset",
    "storage.manager": "IOManager InputContext OutputContext",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # to type checkers, names that are not imported above do not exist

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'servo' has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - only once something is used

        value: object = getattr(import_module(f"servo.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
