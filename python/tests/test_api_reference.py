"""The reference of the Python interface says what the docstrings say."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import servo
import servo.io

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
GROUPS = {
    "Assets": "asset multi_asset sql_asset external AssetSpec Asset MultiAsset SqlAsset ExternalAsset "
    "AssetKey",
    "Dependencies": "dep Dep PartitionMapping same all_partitions available last window specific static_map "
    "time_grain per_dimension dimension",
    "Partitions": "DailyPartitions HourlyPartitions WeeklyPartitions MonthlyPartitions CronPartitions "
    "StaticPartitions DynamicPartitions MultiPartitions Partitions Partition PartitionKey PartitionRange "
    "PartitionBatch",
    "What functions take and return": "Context Config Output Materialization "
    "PartitionFailures md table url plot",
    "Checks": "asset_check row_count not_null unique accepted_values schema fresh sql_check Check "
    "CheckResult",
    "Resources and storage": "resource Resource Secret SecretRef IOManager OutputContext InputContext",
    "How and where tasks run": "Retry Freshness Compute",
    "Schedules and sensors": "schedule sensor push_sensor asset_sensor run_status_sensor file_sensor "
    "RunRequest SensorResult SkipReason Message File ScheduleContext SensorContext",
    "Automation conditions": "Condition eager on_cron on_missing missing in_progress failed updated "
    "code_changed stale new_partition cron_tick latest during at_most any_upstream all_upstream",
    "Notifications": "notify Slack Webhook Email Command",
    "Tests and tools": "materialize collecting Registry",
    "Clients of a server": "Client AsyncClient",
}


def signature(value: Any) -> str:  # noqa: ANN401 - a function or a class
    """Write how something is called, without the types."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in found.parameters.items()
        if name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


def arguments(doc: str) -> list[str]:
    """Give the lines of `Args:` of a docstring, one for each argument."""
    lines = doc.partition("Args:\n")[2].splitlines()
    found: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith("    "):
            break
        if re.match(r"    \**\w+: ", line):
            name, _, text = line.strip().partition(": ")
            found.append(f"- `{name}`: {text}")
        elif found and line.strip():
            found[-1] += f" {line.strip()}"
    return found


def entry(name: str, value: Any) -> list[str]:  # noqa: ANN401 - as above
    """Write what is to be known of a name."""
    doc = inspect.getdoc(value) or ""
    paragraph = " ".join(doc.partition("\n\n")[0].split())
    called = signature(value) if not getattr(value, "_is_protocol", False) else ""
    init = inspect.getdoc(value.__init__) or "" if inspect.isclass(value) else ""
    lines = [f"### `{name}`", "", f"`{name}{called}`" if called else "", "", paragraph, ""]
    listed = arguments(doc) or arguments(init)
    if getattr(value, "_is_protocol", False):
        members = [each for each in vars(value) if not each.startswith("_")]
        listed = [f"- `{each}`: {inspect.getdoc(vars(value)[each])}" for each in members]
    return [*lines, *listed, ""] if listed else lines


def page() -> str:
    """Write the whole reference."""
    lines = [
        "# Python interface",
        "",
        "Every public name of `servo`, as the docstrings have it; `UPDATE_GOLDEN=1` writes this page anew.",
        "",
    ]
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names.split():
            lines += entry(name, getattr(servo, name))
    lines += ["## `servo.io`", ""]
    for name in servo.io.__all__:
        lines += entry(f"servo.io.{name}", getattr(servo.io, name))
    wrapped: list[str] = []
    for line in lines:
        wrapped += wrap(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(wrapped)).rstrip() + "\n"


def wrap(line: str) -> list[str]:
    """Break a line that is too long for a page."""
    import textwrap  # noqa: PLC0415

    if len(line) <= 120:
        return [line]
    indent = "  " if line.startswith("- ") else ""
    return textwrap.wrap(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def test_every_public_name_has_its_place() -> None:
    grouped = " ".join(GROUPS.values()).split()
    public = [name for name in servo.__all__ if not name.startswith("_")]
    assert sorted(grouped) == sorted(public)


def test_the_reference_says_what_docstrings_say() -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text("utf-8") == page()
