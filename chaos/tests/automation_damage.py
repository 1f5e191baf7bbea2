"""Ways to damage the records of schedules, sensors, backfills, conditions, notifications and renames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chaos.tests.damage import LATER, NOBODY, change_log, change_rows, events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]


def _spoil(
    kind: str,
    change: Callable[[list[Json], list[Json], Json], None],
    wanted: Callable[[Json], bool] = lambda _: True,
) -> Callable[[Path], None]:
    """Change the first event of a kind that is wanted: it is given with all batches and with its own."""

    def damage(root: Path) -> None:
        def spoil(batches: list[Json]) -> list[Json]:
            batch, event = next(found for found in events(batches, kind) if wanted(found[1]["payload"]))
            change(batches, batch, event)
            return batches

        change_log(root, spoil)

    return damage


def _drop(_: list[Json], batch: list[Json], event: Json) -> None:
    batch.remove(event)


def _again(**values: object) -> Callable[[list[Json], list[Json], Json], None]:
    """Let it happen again at the end, with other values."""

    def change(batches: list[Json], _: list[Json], event: Json) -> None:
        batches[-1]["events"].append(event | {"event_id": LATER, "payload": event["payload"] | values})

    return change


def _set(**values: object) -> Callable[[list[Json], list[Json], Json], None]:
    """Let it have other values."""

    def change(_: list[Json], __: list[Json], event: Json) -> None:
        event["payload"].update(values)

    return change


def _triggered(payload: Json) -> bool:
    return bool(payload["status"] == "TRIGGERED")


def _by(kind: str) -> Callable[[Json], bool]:
    return lambda payload: payload["source"].get("type") == kind


def _pushed(payload: Json) -> bool:
    return bool(payload["trigger"]["type"] == "push" and payload["status"] == "TRIGGERED")


def _polled(payload: Json) -> bool:
    return bool(payload["trigger"]["type"] == "poll" and payload["status"] == "NO_NEW_DATA")


def _index(number: int) -> Callable[[Json], bool]:
    return lambda payload: bool(payload["chunk_index"] == number)


def _to(*states: str) -> Callable[[Json], bool]:
    return lambda payload: payload["to_state"] in states


def _lose_run(_: list[Json], batch: list[Json], event: Json) -> None:
    """Lose a request for a run, and all that comes of it in its batch."""
    run = event["payload"]["run_id"]
    batch[:] = [
        other for other in batch if other["payload"].get("run_id") != run or "chunk_index" in other["payload"]
    ]


repeat_tick = _spoil("ScheduleTicked", _again())
tick_again_after_the_clock_jumped = _spoil("ScheduleTicked", _again(tick_id="again"))
lose_run_of_tick = _spoil("RunRequested", _lose_run, _by("schedule"))
lose_tick = _spoil("ScheduleTicked", _drop, _triggered)
trigger_nothing = _spoil("ScheduleTicked", _set(runs=[]), _triggered)
repeat_message = _spoil("SensorMessageReceived", _again())
evaluate_message_again = _spoil(
    "SensorEvaluated", _again(eval_id="again", expected_state_version=None), _pushed
)
forget_message = _spoil("SensorEvaluated", _drop, _pushed)
evaluate_what_nobody_sent = _spoil("SensorMessageReceived", _drop)
count_stale_evaluation = _spoil(
    "SensorEvaluated", _set(status="NO_NEW_DATA"), lambda payload: payload["status"] == "STALE"
)
move_cursor = _spoil("SensorEvaluated", _set(cursor_after="999"), _polled)
forget_materialization = _spoil(
    "SensorEvaluated", _drop, lambda payload: payload["trigger"]["type"] == "asset"
)
repeat_chunk = _spoil("BackfillChunkPlanned", _again())
skip_chunk = _spoil("BackfillChunkPlanned", _set(chunk_index=5), _index(1))
lose_run_of_chunk = _spoil("RunRequested", _lose_run, _by("backfill"))
leave_backfill_open = _spoil("BackfillStateChanged", _drop, _to("SUCCEEDED"))
revive_backfill = _spoil("BackfillStateChanged", _again(to_state="RUNNING"), _to("CANCELLED"))
lose_run_of_condition = _spoil("RunRequested", _lose_run, _by("condition"))
lose_answer_of_notification = _spoil("NotificationAttempted", _drop)
fail_notification = _spoil("NotificationAttempted", _set(status="FAILED", error="503"))
tell_again = _spoil("NotificationRequested", _again(attempt=2))
lose_move = _spoil("AssetMoved", _drop)


def rename_run_of_tick(root: Path) -> None:
    """Let a tick name its run by another key."""
    _spoil(
        "ScheduleTicked", lambda _, __, event: event["payload"]["runs"][0].update(run_key="x"), _triggered
    )(root)


def give_stale_evaluation_a_run(root: Path) -> None:
    """Let a stale evaluation have a run."""
    runs = [{"run_key": "x", "run_id": "run_of_nobody", "request_fingerprint": "x"}]
    _spoil("SensorEvaluated", _set(run_requests=runs), lambda payload: payload["status"] == "STALE")(root)


def plan_partitions_twice(root: Path) -> None:
    """Let a chunk have the partitions of the one before."""

    def change(batches: list[Json], _: list[Json], event: Json) -> None:
        first = events(batches, "BackfillChunkPlanned")[0][1]["payload"]
        event["payload"]["partition_keys"] = first["partition_keys"]

    _spoil("BackfillChunkPlanned", change, _index(1))(root)


def plan_after_cancel(root: Path) -> None:
    """Let the cancellation come before the last chunk."""

    def change(batches: list[Json], batch: list[Json], event: Json) -> None:
        of = event["payload"]["backfill_id"]
        batch.remove(event)
        planned = [
            found
            for found in events(batches, "BackfillChunkPlanned")
            if found[1]["payload"]["backfill_id"] == of
        ]
        owner, last = planned[-1]
        owner.insert(owner.index(last), event)

    _spoil("BackfillStateChanged", change, _to("CANCELLED"))(root)


def plan_too_many_at_once(root: Path) -> None:
    """Let a chunk be planned together with the one before."""

    def change(batches: list[Json], batch: list[Json], event: Json) -> None:
        run = event["payload"]["run_id"]
        mine = [other for other in batch if other["payload"].get("run_id") == run]
        batch[:] = [other for other in batch if other not in mine]
        first = events(batches, "BackfillChunkPlanned")[0][0]
        first += mine

    _spoil("BackfillChunkPlanned", change, _index(1))(root)


def keep_place_of_chunk(root: Path) -> None:
    """Let a backfill not know that a chunk has ended."""

    def change(rows: list[Json]) -> list[Json]:
        return [row | {"completed_chunks": row["completed_chunks"] - 1} for row in rows]

    change_rows(root, "backfills", change)


def fire_condition_twice(root: Path) -> None:
    """Let a condition ask for the same again at once."""

    def change(_: list[Json], batch: list[Json], event: Json) -> None:
        payload = event["payload"] | {"evaluation_id": NOBODY}
        batch.insert(batch.index(event) + 1, event | {"event_id": NOBODY, "payload": payload})

    _spoil("ConditionsEvaluated", change)(root)


def lose_notification(root: Path) -> None:
    """Forget that something failed."""

    def change(batches: list[Json]) -> list[Json]:
        for batch in batches:
            batch["events"] = [
                event for event in batch["events"] if not event["event_type"].startswith("NotificationRe")
            ]
            batch["events"] = [
                event for event in batch["events"] if event["event_type"] != "NotificationAttempted"
            ]
        return batches

    change_log(root, change)


def _rows(table: str, change: Callable[[list[Json]], list[Json]]) -> Callable[[Path], None]:
    return lambda root: change_rows(root, table, change)


lose_row_of_tick = _rows("schedule_ticks", lambda rows: rows[:-1])
lose_row_of_rename = _rows("asset_renames", lambda _: [])
change_cursor_in_table = _rows("sensor_state", lambda rows: [row | {"cursor": "of nobody"} for row in rows])
change_notification_in_table = _rows(
    "notifications", lambda rows: [row | {"status": "FAILED"} for row in rows]
)
lose_act_of_schedule = _rows(
    "audit", lambda rows: [row for row in rows if row["action"] != "schedule.define"]
)


def count_what_was_wiped(root: Path) -> None:
    """Let something count although it was wiped while it was made."""

    def change(batches: list[Json]) -> list[Json]:
        finished = [
            found
            for found in events(batches, "TaskFinished")
            if found[1]["payload"]["outcome"] == "SUCCEEDED"
        ]
        owner, event = next(
            found for found in finished if found[1]["payload"]["task_key"].startswith("auto/beat")
        )
        wipe = events(batches, "PartitionsWiped")[0][1]
        payload = wipe["payload"] | {"asset_key": "auto/beat"}
        owner.insert(
            owner.index(event), wipe | {"event_id": event["event_id"][:-1] + "0", "payload": payload}
        )
        return batches

    change_log(root, change)


def forget_wipe(root: Path) -> None:
    """Lose the wipe that kept a late result from counting."""
    _spoil("PartitionsWiped", _drop)(root)


def forget_rename(root: Path) -> None:
    """Lose the record of a rename, and of the move."""

    def change(batches: list[Json]) -> list[Json]:
        for kind in ("AssetRenamed", "AssetMoved"):
            owner, event = events(batches, kind)[0]
            owner.remove(event)
        return batches

    change_log(root, change)


for _name, _value in list(globals().items()):
    if callable(_value) and getattr(_value, "__name__", "") in {"damage", "<lambda>"}:
        _value.__name__ = _name
