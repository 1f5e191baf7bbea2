"""Requests to a server, each declared once: both clients are made of these functions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from servo.client import records
from servo.client.calls import (
    JSON,
    Call,
    Page,
    Texts,
    asset_path,
    change,
    event_id,
    get,
    pages,
    partitions,
    path,
    run_body,
    run_id,
)
from servo.client.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from servo.keys import AssetKey

AnyRun = str | Record
Time = str | datetime


def version() -> Call[str]:
    """Give the version of the server."""
    return get(lambda value: str(value["version"]), "version")


def ready() -> Call[JSON]:
    """Say whether the server is of use, with its checks; a server that is not raises a problem."""
    return get(dict, "readyz")


def trigger(  # noqa: PLR0913 - as many as a request has fields
    selection: str,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    latest: bool = False,
    missing: bool = False,
    failed: bool = False,
    stale: bool = False,
    config: Mapping[str, Any] | None = None,
    run_key: str | None = None,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    timeout: float | None = None,
    retry: bool = True,
    check: bool = False,
    idempotency_key: str | None = None,
) -> Call[records.AcceptedRun]:
    """Ask for a run. It is made once, however often the request had to be sent.

    Args:
        selection: which assets, as for commands: `"raw.flights"`, `"+analytics.*"`, `"tag:daily"`.
        partitions: keys of partitions, such as `"2013-01-15"`.
        ranges: ranges of them, such as `"2013-01-01..2013-01-31"`, both ends included.
        latest: the newest partition of every asset.
        missing: only those that were never made.
        failed: only those whose last attempt failed.
        stale: only those that have to be made to be up to date.
        config: values of configuration fields.
        run_key: a name for the request: the same key is the same run, for ever.
        priority: higher runs first.
        labels: free labels.
        timeout: seconds after which the run is stopped.
        retry: whether tasks that fail are tried again as their policy says.
        check: run the checks of what is materialized, and make nothing.
        idempotency_key: for a day, the same key gets the same answer; made up unless given.
    """
    which = _which(partitions, ranges, latest=latest, missing=missing, failed=failed, stale=stale)
    options: dict[str, Any] = {"config": config, "run_key": run_key, "priority": priority, "labels": labels}
    body = run_body(selection, which, timeout=timeout, retry=retry, check=check, **options)
    return change(records.AcceptedRun, "runs", body=body, key=idempotency_key)


def plan(  # noqa: PLR0913 - as above
    selection: str,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    latest: bool = False,
    missing: bool = False,
    failed: bool = False,
    stale: bool = False,
    config: Mapping[str, Any] | None = None,
) -> Call[records.Plan]:
    """Say what a request would run, and why; nothing is stored."""
    which = _which(partitions, ranges, latest=latest, missing=missing, failed=failed, stale=stale)
    body = {
        name: value for name, value in run_body(selection, which, config=config).items() if value is not None
    }
    return Call(records.Plan, "POST", path("plan"), {}, body)


def run(run: AnyRun, *, after: str | Record | None = None) -> Call[records.Run]:
    """Give a run; `after` is a change, or its event, that must be visible."""
    return get(records.Run, "runs", run_id(run), wait_for_event_id=event_id(after))


def runs(  # noqa: PLR0913 - as many as there are filters
    *,
    state: Texts | None = None,
    source: Texts | None = None,
    asset: str | AssetKey | None = None,
    partition: str | None = None,
    labels: Mapping[str, str] | None = None,
    created_after: Time | None = None,
    created_before: Time | None = None,
    oldest_first: bool = False,
) -> Call[Page[records.Run]]:
    """List runs, the newest first. Pages are asked for as they are needed."""
    return get(
        pages(records.Run),
        "runs",
        limit=100,
        state=state,
        source=source,
        asset=None if asset is None else str(asset),
        partition=partition,
        label=labels or None,
        created_after=created_after,
        created_before=created_before,
        sort="created_at" if oldest_first else None,
    )


def tasks(
    run: AnyRun, *, state: Texts | None = None, asset: str | AssetKey | None = None
) -> Call[Page[records.Task]]:
    """List the tasks of a run, by key."""
    about = None if asset is None else str(asset)
    return get(pages(records.Task), "runs", run_id(run), "tasks", limit=100, state=state, asset=about)


def task(run: AnyRun, task: str | records.Task) -> Call[records.Task]:
    """Give a task with its attempts, checks, errors and outputs."""
    return get(records.Task, "runs", run_id(run), "tasks", task_id(task))


def cancel(
    run: AnyRun, *, reason: str = "", force: bool = False, idempotency_key: str | None = None
) -> Call[records.Accepted]:
    """Cancel a run; with `force`, workers that have fallen silent are not waited for."""
    body = {"reason": reason, "force": force}
    return change(records.Accepted, "runs", run_id(run), "cancel", body=body, key=idempotency_key)


def retry(
    run: AnyRun, *, from_failure: bool = False, idempotency_key: str | None = None
) -> Call[records.AcceptedRun]:
    """Ask for a new run that does the same, or with `from_failure` what did not succeed."""
    body = {"from_failure": from_failure}
    return change(records.AcceptedRun, "runs", run_id(run), "retry", body=body, key=idempotency_key)


def retry_now(run: AnyRun, *, idempotency_key: str | None = None) -> Call[records.Accepted]:
    """Try at once the tasks of a run that wait to be tried again."""
    return change(records.Accepted, "runs", run_id(run), "retry-now", body={}, key=idempotency_key)


def costs(
    *,
    by: Literal["asset", "day", "run"] = "asset",
    selection: str | None = None,
    since: Time | None = None,
    until: Time | None = None,
) -> Call[Page[records.CostGroup]]:
    """List what attempts cost, failed ones too: by asset or run the dearest first, by day the newest first.

    Args:
        by: what is counted together.
        selection: which deployed assets; all that were ever made unless given.
        since: only attempts that ended then or later; 30 days before the end unless given, 366 at most.
        until: only attempts that ended before; now unless given.
    """
    which = {"by": by, "selection": selection, "since": since, "until": until}
    return get(pages(records.CostGroup), "costs", limit=100, **which)


def assets(
    selection: str = "*", *, contains: str | None = None, needs_attention: bool | None = None
) -> Call[Page[records.Asset]]:
    """List the assets that a selection means."""
    options = {"contains": contains, "needs_attention": needs_attention}
    return get(pages(records.Asset), "assets", limit=100, selection=selection, **options)


def asset(asset: str | AssetKey) -> Call[records.Asset]:
    """Give an asset with its definition, neighbours and latest materialization."""
    return get(records.Asset, *asset_path(asset))


def asset_partitions(
    asset: str | AssetKey, *, status: Texts | None = None, newest_first: bool = False
) -> Call[Page[records.Partition]]:
    """List the partitions of an asset with what is known of each."""
    options = {"status": status, "newest_first": newest_first or None}
    return get(pages(records.Partition), *asset_path(asset), "partitions", limit=100, **options)


def materializations(
    asset: str | AssetKey,
    *,
    partition: str | None = None,
    run: AnyRun | None = None,
    created_after: Time | None = None,
    created_before: Time | None = None,
) -> Call[Page[records.Materialization]]:
    """List what was made of an asset, the newest first."""
    return get(
        pages(records.Materialization),
        *asset_path(asset),
        "materializations",
        limit=100,
        partition=partition,
        run_id=None if run is None else run_id(run),
        created_after=created_after,
        created_before=created_before,
    )


def materialization(asset: str | AssetKey, partition: str | None = None) -> Call[records.Materialization]:
    """Give the latest materialization of an asset or a partition: metadata, columns, first rows."""
    return get(records.Materialization, *asset_path(asset), "materialization", partition=partition)


def why_stale(asset: str | AssetKey, partition: str | None = None) -> Call[records.WhyStale]:
    """Say why an asset or one of its partitions is stale, in a sentence and by cause."""
    return get(records.WhyStale, *asset_path(asset), "why", partition=partition)


def stale(selection: str = "*", *, reason: str | None = None) -> Call[Page[records.StalePartition]]:
    """List partitions that are not what they would be if they were made now, each with its reason and root.

    `reason` is one of `NEVER_MADE`, `EXPIRED`, `CODE_CHANGED`, `UPSTREAM_NEWER`, `UPSTREAM_STALE` and
    `FRESHNESS_MISSED`.
    """
    of = pages(records.StalePartition)
    return get(of, "partitions", "stale", limit=100, selection=selection, reason=reason)


def wipe(  # noqa: PLR0913 - as many as a request has fields
    asset: str | AssetKey,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    everything: bool = False,
    outside: bool = False,
    keep_data: bool = False,
    force: bool = False,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[records.Wiped]:
    """Wipe partitions of an asset: it is as if they had never been made.

    Args:
        asset: the asset; one without partitions is wiped as a whole.
        partitions: keys of partitions, such as `"2013-01-15"`.
        ranges: ranges of them, both ends included.
        everything: all of them.
        outside: those that the definition of the asset does not have any more.
        keep_data: the data stays where it is; only this can be undone.
        force: also if runs are at work on them: what they make does not count.
        reason: why, for the audit.
        idempotency_key: for a day, the same key gets the same answer; made up unless given.
    """
    which = _which(partitions, ranges, all=everything, outside=outside)
    body = {
        "partitions": which,
        "keep_data": keep_data or None,
        "force": force or None,
        "reason": reason or None,
    }
    wiped = (*asset_path(asset), "partitions", "wipe")
    return change(records.Wiped, *wiped, body=body, key=idempotency_key)


def mark(  # noqa: PLR0913 - as many as a request has fields
    asset: str | AssetKey,
    mark_as: Literal["materialized", "failed"],
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    everything: bool = False,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[records.Marked]:
    """Say of partitions that their data is there, whoever has made it, or that they are to be made again."""
    which = _which(partitions, ranges, all=everything)
    body = {"partitions": which, "as": mark_as, "reason": reason or None}
    marked = (*asset_path(asset), "partitions", "mark")
    return change(records.Marked, *marked, body=body, key=idempotency_key)


def backfills(  # noqa: PLR0913 - as many as there are filters
    *,
    state: Texts | None = None,
    asset: str | AssetKey | None = None,
    source: Literal["request", "retry"] | None = None,
    created_after: Time | None = None,
    created_before: Time | None = None,
    oldest_first: bool = False,
) -> Call[Page[records.Backfill]]:
    """List backfills, the newest first."""
    return get(
        pages(records.Backfill),
        *_BACKFILLS,
        limit=100,
        state=state,
        asset=None if asset is None else str(asset),
        source=source,
        created_after=created_after,
        created_before=created_before,
        sort="created_at" if oldest_first else None,
    )


def backfill(backfill: str | Record) -> Call[records.Backfill]:
    """Give a backfill, with its rate."""
    return get(records.Backfill, *_BACKFILLS, backfill_id(backfill))


def backfill_chunks(
    backfill: str | Record, *, state: Texts | None = None
) -> Call[Page[records.BackfillChunk]]:
    """List the chunks of a backfill, the last first."""
    chunks = (*_BACKFILLS, backfill_id(backfill), "chunks")
    return get(pages(records.BackfillChunk), *chunks, limit=100, state=state)


def create_backfill(  # noqa: PLR0913 - as many as a request has fields
    selection: str,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    missing: bool = False,
    failed: bool = False,
    stale: bool = False,
    chunk_size: int | None = None,
    max_concurrent_runs: int | None = None,
    stop_on_failure: bool = False,
    failure_threshold: str | None = None,
    config: Mapping[str, Any] | None = None,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
) -> Call[records.AcceptedBackfill]:
    """Make many partitions, chunk by chunk.

    Args:
        selection: which assets, as for commands.
        partitions: keys of partitions, such as `"2013-01-15"`.
        ranges: ranges of them, such as `"2013-01-01..2013-01-31"`, both ends included.
        missing: only those that were never made.
        failed: only those whose last attempt failed.
        stale: only those that have to be made to be up to date.
        chunk_size: the most partitions of one run; 10 unless given.
        max_concurrent_runs: the most runs at once; 2 unless given.
        stop_on_failure: plan no chunk after a failure.
        failure_threshold: plan no chunk once more partitions than this have failed: `"10%"` or `"25"`.
        config: values of configuration fields.
        priority: higher runs first.
        labels: free labels of its runs.
        idempotency_key: for a day, the same key is the same backfill; made up unless given.
    """
    which = _which(partitions, ranges, missing=missing, failed=failed, stale=stale)
    body = _backfill_body(
        selection,
        which,
        chunk_size=chunk_size,
        max_concurrent_runs=max_concurrent_runs,
        stop_on_failure=stop_on_failure or None,
        failure_threshold=failure_threshold,
        config=dict(config) if config else None,
        priority=priority or None,
        labels=dict(labels) if labels else None,
    )
    return change(records.AcceptedBackfill, *_BACKFILLS, body=body, key=idempotency_key)


def backfill_preview(  # noqa: PLR0913 - as many as a request has fields
    selection: str,
    *,
    partitions: Texts = (),
    ranges: Texts = (),
    missing: bool = False,
    failed: bool = False,
    stale: bool = False,
    chunk_size: int | None = None,
    max_concurrent_runs: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Call[records.BackfillPreview]:
    """Say what a backfill would make, in how many chunks, and how long it takes; nothing is stored."""
    which = _which(partitions, ranges, missing=missing, failed=failed, stale=stale)
    body = _backfill_body(
        selection,
        which,
        chunk_size=chunk_size,
        max_concurrent_runs=max_concurrent_runs,
        config=dict(config) if config else None,
    )
    return Call(records.BackfillPreview, "POST", path(*_BACKFILLS, "preview"), {}, body)


def pause_backfill(backfill: str | Record, *, reason: str = "") -> Call[records.Accepted]:
    """Plan no more chunks of a backfill; runs that are at work go on."""
    body = {"reason": reason}
    return change(records.Accepted, *_BACKFILLS, backfill_id(backfill), "pause", body=body)


def resume_backfill(backfill: str | Record) -> Call[records.Accepted]:
    """Go on with a backfill that is paused."""
    return change(records.Accepted, *_BACKFILLS, backfill_id(backfill), "resume", body={})


def cancel_backfill(backfill: str | Record, *, reason: str = "") -> Call[records.Accepted]:
    """Cancel a backfill and its runs."""
    body = {"reason": reason}
    return change(records.Accepted, *_BACKFILLS, backfill_id(backfill), "cancel", body=body)


def retry_failed_backfill(backfill: str | Record) -> Call[records.AcceptedBackfill]:
    """Ask for another backfill of what this one did not make."""
    failed = (*_BACKFILLS, backfill_id(backfill), "retry-failed")
    return change(records.AcceptedBackfill, *failed, body={})


def sql(query: str, *, max_rows: int | None = None, timeout: int | None = None) -> Call[records.Table]:
    """Run a query over Servo's tables and the data of assets. Nothing is changed by it.

    Args:
        query: one query in DuckDB's SQL, over tables such as `runs`, and assets as `raw.orders`.
        max_rows: rows that are returned; 1,000 unless given, at most 10,000.
        timeout: seconds after which the query is stopped; 20 unless given, at most 60.
    """
    said = {"query": query, "max_rows": max_rows, "max_seconds": timeout}
    body = {name: value for name, value in said.items() if value is not None}
    return Call(records.Table, "POST", path("sql"), {}, body)


def request(
    method: str,
    route: str,
    *,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[Any]:
    """Ask any route of `/api/v1`, such as `("GET", "settings")`, and give its JSON.

    A method other than `GET` that has no `body` is sent `{}`.
    """
    segments = [each for each in route.split("/") if each]
    if method.upper() == "GET":
        return get(_as_is, *segments, **dict(query or {}))
    made = change(_as_is, *segments, body=body or {}, key=idempotency_key)
    return Call(_as_is, method.upper(), made.path, query or {}, made.body, made.key)


def task_id(task: str | records.Task) -> str:
    """Give the id of a task."""
    return task if isinstance(task, str) else task.task_id


def backfill_id(backfill: str | Record) -> str:
    """Give the id of a backfill."""
    return backfill if isinstance(backfill, str) else str(backfill["backfill_id"])


def _which(keys: Texts, ranges: Texts, **flags: bool) -> dict[str, Any] | None:
    return partitions(keys, ranges, **flags)


def _backfill_body(selection: str, which: dict[str, Any] | None, **options: object) -> dict[str, Any]:
    body = {"selection": selection, "partitions": which, **options}
    return {name: value for name, value in body.items() if value is not None}


def _as_is(value: object) -> Any:  # noqa: ANN401 - JSON
    return value


_BACKFILLS: Iterable[str] = ("orchestration", "backfills")
