"""Ways to damage a workspace, each of which a checker must notice."""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]
# An id that nothing has, and one that is later than all others.
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
LATER = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


def one(root: Path, pattern: str) -> Path:
    """Give the first path that fits."""
    return min(root.glob(pattern))


def segment(root: Path) -> Path:
    """Give the one file of the log."""
    return one(root, "ledger/orchestration/*.jsonl")


def change_log(root: Path, change: Callable[[list[Json]], list[Json]]) -> None:
    """Write the log anew with other batches, each with the right checksum."""
    batches = [json.loads(line) for line in segment(root).read_text("utf-8").splitlines()]
    with segment(root).open("wb") as file:
        for batch in change(batches):
            del batch["crc"]
            body = json.dumps(batch, separators=(",", ":"), ensure_ascii=False).encode()[1:-1]
            file.write(b'{"crc":"%08x",%s}\n' % (zlib.crc32(body), body))


def events(batches: list[Json], kind: str) -> list[tuple[list[Json], Json]]:
    """Give the events of a kind, each with the list that it is in."""
    return [
        (batch["events"], event)
        for batch in batches
        for event in batch["events"]
        if event["event_type"] == kind
    ]


def change_manifest(root: Path, change: Callable[[Json], None]) -> None:
    """Change the newest manifest, and its copy."""
    newest = max(root.glob("manifests/orchestration/*.json"))
    manifest = json.loads(newest.read_bytes())
    change(manifest)
    newest.write_text(json.dumps(manifest), "utf-8")
    shutil.copyfile(newest, root / "manifests" / "orchestration.manifest.json")


def change_rows(root: Path, table: str, change: Callable[[list[Json]], list[Json]]) -> None:
    """Change the rows of a table in each of its files, and let the manifests say that it is right."""

    def change_files(manifest: Json) -> None:
        parts = [part["tables"] for part in (manifest["base_snapshot"], *manifest["l0_deltas"]) if part]
        for file in [file for tables in [*parts, manifest["history"]] for file in tables.get(table, [])]:
            path = root / file["path"]
            found = pq.read_table(path)
            rows = change(found.to_pylist())
            pq.write_table(pa.Table.from_pylist(rows, schema=found.schema), path)
            content = path.read_bytes()
            file.update(rows=len(rows), bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    change_manifest(root, change_files)


def change_row(root: Path, table: str, **values: object) -> None:
    """Let the last row of each file of a table have other values."""
    change_rows(root, table, lambda rows: [*rows[:-1], rows[-1] | values])


def delete_data(root: Path) -> None:
    """Delete a file of data."""
    one(root, "assets/days/raw/**/data.parquet").unlink()


def change_data(root: Path) -> None:
    """Change a file of data."""
    path = one(root, "assets/fan/root/**/data.json")
    path.write_bytes(path.read_bytes() + b" ")


def delete_marker(root: Path) -> None:
    """Delete what says that data was committed."""
    one(root, "assets/fan/join/**/_commit.json").unlink()


def change_marker(root: Path) -> None:
    """Let what says that data was committed contradict what was reported."""
    path = one(root, "assets/fan/join/**/_commit.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"byte_size": 0}), "utf-8")


def swap_marker(root: Path) -> None:
    """Let data be committed as that of something else."""
    path = one(root, "assets/fan/join/**/_commit.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"asset": "of/nobody"}), "utf-8")


def delete_directory(root: Path) -> None:
    """Delete a materialization."""
    shutil.rmtree(one(root, "assets/fan/late/materializations/*"))


def copy_directory(root: Path) -> None:
    """Let there be a materialization that the log does not count."""
    path = one(root, "assets/days/total/**/materializations/*")
    shutil.copytree(path, path.with_name(NOBODY))


def leave_in_quarantine(root: Path) -> None:
    """Let something be in quarantine that does not wait."""
    path = one(root, "assets/trouble/guarded/**/quarantine/*")
    shutil.copytree(path, path.with_name(NOBODY))


def empty_quarantine(root: Path) -> None:
    """Delete what waits for review."""
    shutil.rmtree(one(root, "assets/trouble/guarded/**/quarantine/*"))


def turn_pointer(root: Path) -> None:
    """Let the latest be something else."""
    path = one(root, "assets/fan/root/latest.json")
    pointer = json.loads(path.read_bytes()) | {"materialization_id": NOBODY}
    path.write_text(json.dumps(pointer), "utf-8")


def delete_pointer(root: Path) -> None:
    """Let nothing be the latest."""
    one(root, "assets/fan/root/latest.json").unlink()


def leave_pointer(root: Path) -> None:
    """Let something that was never made have a latest."""
    path = root / "assets" / "of" / "nobody"
    path.mkdir(parents=True)
    shutil.copyfile(one(root, "assets/fan/root/latest.json"), path / "latest.json")


def leave_staged(root: Path) -> None:
    """Leave something in staging."""
    (root / "staging" / "run_a" / "t_b").mkdir(parents=True)


def leave_unfinished(root: Path) -> None:
    """Leave a file that was not finished."""
    (root / "manifests" / ".tmp-1").touch()


def _with_request(root: Path, change: Callable[[list[Json], Json], None]) -> None:
    """Let the first request for a run have a name, and change the batch that it is in."""

    def spoil(batches: list[Json]) -> list[Json]:
        batch, event = events(batches, "RunRequested")[0]
        event["payload"]["request_id"] = "6f1c"
        change(batch, event)
        return batches

    change_log(root, spoil)


def repeat_retry(root: Path) -> None:
    """Let one request have made two runs, each with a key of its own."""

    def again(batch: list[Json], event: Json) -> None:
        payload = event["payload"] | {"run_id": "run_of_nobody", "run_key": "another"}
        batch.append(event | {"event_id": LATER, "payload": payload})

    _with_request(root, again)


def repeat_answer(root: Path) -> None:
    """Let one request have been answered twice."""

    def twice(batch: list[Json], event: Json) -> None:
        payload = {"request_id": "6f1c", "request_fingerprint": event["payload"]["request_fingerprint"]}
        answered = event | {"event_type": "RequestAnswered", "payload": payload}
        batch += [answered | {"event_id": NOBODY}, answered | {"event_id": LATER}]

    _with_request(root, twice)


def lose_run_keys(root: Path) -> None:
    """Publish tables without the files of run keys."""
    change_manifest(root, lambda manifest: manifest.update(run_keys=[]))


def change_run_keys(root: Path) -> None:
    """Change a byte of a file of run keys."""
    path = one(root, "state/orchestration/run_key_index/*.keys")
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)


def leave_table(root: Path) -> None:
    """Leave a file of a table that was never published."""
    path = one(root, "state/orchestration/runs/*.parquet")
    shutil.copyfile(path, path.with_name("l0-00000000000000000001-x.parquet"))


def delete_table(root: Path) -> None:
    """Delete a file of a table."""
    newest = max(root.glob("manifests/orchestration/*.json"))
    (root / json.loads(newest.read_bytes())["history"]["materializations"][0]["path"]).unlink()


def tear_log(root: Path) -> None:
    """Cut the last line of the log in two."""
    content = segment(root).read_bytes()
    segment(root).write_bytes(content[:-20])


def drop_last_batch(root: Path) -> None:
    """Lose the last batch in which a task ends, and what comes after it."""

    def cut(batches: list[Json]) -> list[Json]:
        last = [n for n, batch in enumerate(batches) if events([batch], "TaskFinished")][-1]
        return batches[:last]

    change_log(root, cut)


def drop_batch(root: Path) -> None:
    """Lose a batch in the middle."""
    change_log(root, lambda batches: batches[:5] + batches[6:])


def repeat_batch(root: Path) -> None:
    """Write a batch twice."""
    change_log(root, lambda batches: [*batches[:6], json.loads(json.dumps(batches[5])), *batches[6:]])


def _drop(kind: str) -> Callable[[Path], None]:
    """Lose the last event of a kind."""

    def damage(root: Path) -> None:
        def change(batches: list[Json]) -> list[Json]:
            owner, event = events(batches, kind)[-1]
            owner.remove(event)
            return batches

        change_log(root, change)

    damage.__name__ = f"drop_{kind}"
    return damage


drop_requested = _drop("RunRequested")
drop_plan = _drop("PlanCreated")
drop_dispatched = _drop("DispatchRequested")
drop_finished = _drop("TaskFinished")


def _repeat(kind: str, *, at_once: bool = False, **values: object) -> Callable[[Path], None]:
    """Let the first event of a kind happen again, at the end or at once, with other values in it."""

    def damage(root: Path) -> None:
        def change(batches: list[Json]) -> list[Json]:
            owner, event = events(batches, kind)[0]
            again = event | {"event_id": LATER, "payload": event["payload"] | values}
            if at_once:
                owner.insert(owner.index(event) + 1, again)
            else:
                batches[-1]["events"].append(again)
            return batches

        change_log(root, change)

    damage.__name__ = "_".join(["repeat", kind, *(["at_once"] if at_once else []), *values])
    return damage


repeat_requested = _repeat("RunRequested")
repeat_run_key = _repeat("RunRequested", run_id="run_of_nobody")
repeat_plan = _repeat("PlanCreated")
repeat_triggered = _repeat("RunTriggered")
repeat_dispatch = _repeat("DispatchRequested", attempt=2)
repeat_dispatch_at_once = _repeat("DispatchRequested", at_once=True, attempt=2)
repeat_started = _repeat("TaskStarted", at_once=True)
repeat_finished = _repeat("TaskFinished")
report_of_nobody = _repeat("TaskFinished", attempt_id=NOBODY)


def repeat_event(root: Path) -> None:
    """Write an event twice."""

    def change(batches: list[Json]) -> list[Json]:
        batches[-1]["events"].append(batches[-1]["events"][-1])
        return batches

    change_log(root, change)


def commit_twice(root: Path) -> None:
    """Let two attempts of one task of a plan be committed."""

    def change(batches: list[Json]) -> list[Json]:
        finished = [event for _, event in events(batches, "TaskFinished")]
        done = next(event for event in finished if event["payload"]["outcome"] == "SUCCEEDED")
        _, dispatched = events(batches, "DispatchRequested")[0]
        again = {name: done["payload"][name] for name in ("run_id", "task_key")}
        again |= {"attempt": done["payload"]["attempt"] + 1, "attempt_id": NOBODY}
        for number, event in enumerate((dispatched, done)):
            later = {"event_id": f"{LATER[:-1]}{number}", "payload": event["payload"] | again}
            batches[-1]["events"].append(event | later)
        return batches

    change_log(root, change)


def hurry(root: Path) -> None:
    """Dispatch a task before what it needs is there."""

    def change(batches: list[Json]) -> list[Json]:
        _, plan = events(batches, "PlanCreated")[0]
        keys = [task["task_key"] for task in plan["payload"]["tasks"]]
        root_task = plan["payload"]["tasks"][keys.index("fan/root:materialize")]
        root_task["upstream"] = [keys.index("fan/join:materialize")]
        return batches

    change_log(root, change)


def change_task(root: Path) -> None:
    """Let a table say that a task has another state."""
    change_row(root, "tasks", state="RUNNING")


def change_run(root: Path) -> None:
    """Let a table say that a run has another state."""
    change_row(root, "runs", state="SUCCEEDED")


def change_made(root: Path) -> None:
    """Let a table say that a materialization has other contents."""
    change_row(root, "materializations", content_hash="sha256:0")


def change_status(root: Path) -> None:
    """Let a table say that something else is the newest of every partition."""
    values = {"last_materialization_id": NOBODY}
    change_rows(root, "partition_status", lambda rows: [row | values for row in rows])


def invent_task(root: Path) -> None:
    """Let a table have a task that never was."""
    change_row(root, "tasks", task_key="of/nobody:materialize")


def change_code_version(root: Path) -> None:
    """Let something be made by code that did not run."""
    change_row(root, "materializations", code_version="of nobody")


def lose_input(root: Path) -> None:
    """Forget what was read."""
    change_rows(root, "materialization_inputs", lambda rows: rows[:-1])


def read_nothing(root: Path) -> None:
    """Let an attempt be told to read what was never made."""

    def change(batches: list[Json]) -> list[Json]:
        for _, event in events(batches, "DispatchRequested"):
            for read in event["payload"].get("provenance", {}).get("inputs", []):
                for piece in read["pieces"].get("named", []):
                    piece["id"] = NOBODY
        return batches

    change_log(root, change)


def ignore_gate(root: Path) -> None:
    """Let data count although a critical check did not let it pass."""

    def change(batches: list[Json]) -> list[Json]:
        for _, event in events(batches, "DispatchRequested"):
            for check in event["payload"].get("provenance", {}).get("checks", []):
                check["severity"] = "critical"
        for _, event in events(batches, "TaskFinished"):
            for output in event["payload"].get("outputs", []):
                for check in output.get("checks", []):
                    check["passed"] = False
        return batches

    change_log(root, change)


def lose_act(root: Path) -> None:
    """Forget who asked."""
    change_rows(root, "audit", lambda rows: rows[:-1])


def change_act(root: Path) -> None:
    """Let somebody else have asked."""
    change_row(root, "audit", principal="user:nobody")


def forget_failures(root: Path) -> None:
    """Let no asset have failed."""
    change_rows(root, "asset_states", lambda rows: [row | {"last_failure_at": None} for row in rows])


def lose_row(root: Path) -> None:
    """Lose a row of a table."""
    change_rows(root, "materializations", lambda rows: rows[:-1])


def repeat_row(root: Path) -> None:
    """Let a row be twice in a table of history."""
    change_rows(root, "materializations", lambda rows: [*rows, rows[-1]])


def repeat_hot_row(root: Path) -> None:
    """Let a row be twice in a table of which only the newest row of a key is read."""
    change_rows(root, "tasks", lambda rows: [*rows, rows[-1]])


def miscount_rows(root: Path) -> None:
    """Let the manifest say that a file has no rows."""
    change_manifest(root, lambda manifest: manifest["history"]["materializations"][0].update(rows=0))


def change_table(root: Path) -> None:
    """Let a file of a table be another than the manifest says."""
    newest = max(root.glob("manifests/orchestration/*.json"))
    path = root / json.loads(newest.read_bytes())["history"]["materializations"][0]["path"]
    path.write_bytes(path.read_bytes() + b" ")


def stale_copy(root: Path) -> None:
    """Let the copy of the newest manifest be of an older one."""
    copy = root / "manifests" / "orchestration.manifest.json"
    manifest = json.loads(copy.read_bytes())
    copy.write_text(json.dumps(manifest | {"revision": manifest["revision"] - 1}), "utf-8")


def stale_tables(root: Path) -> None:
    """Let the tables end before the log does."""

    def change(manifest: Json) -> None:
        manifest["watermarks"]["last_seq"] -= 1

    change_manifest(root, change)


def delete_manifests(root: Path) -> None:
    """Delete what says where the tables are."""
    shutil.rmtree(root / "manifests" / "orchestration")


def lose_lines(root: Path) -> None:
    """Lose lines of a log of a task."""
    path = max(root.glob("logs/*/*/*.jsonl"), key=lambda path: path.stat().st_size)
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-5]), "utf-8")


def repeat_lines(root: Path) -> None:
    """Keep a line of a log of a task twice."""
    path = max(root.glob("logs/*/*/*.jsonl"), key=lambda path: path.stat().st_size)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines, lines[10]]), "utf-8")


def keep_what_was_removed(root: Path) -> None:
    """Let data that retention has removed be there."""
    batches = [json.loads(line) for line in segment(root).read_text("utf-8").splitlines()]
    homes = root / "assets" / "fan" / "root" / "materializations"
    shutil.copytree(one(homes, "*"), homes / _removed(batches)[0]["materialization_id"])


def lose_removal(root: Path) -> None:
    """Lose the row of what was removed."""
    change_rows(root, "removals", lambda rows: rows[:-1])


def remove_newest(root: Path) -> None:
    """Let retention remove what counts."""
    _remove(root, -1)


def remove_what_was_read(root: Path) -> None:
    """Let retention remove what the newest of something else was made of."""
    _remove(root, 0)


def remove_what_never_was(root: Path) -> None:
    """Let retention remove what was never made."""

    def change(batches: list[Json]) -> list[Json]:
        _removed(batches)[0]["materialization_id"] = NOBODY
        return batches

    change_log(root, change)


def _removed(batches: list[Json]) -> list[Json]:
    """Give what the first retention of a log removes."""
    expired: list[Json] = events(batches, "RetentionApplied")[0][1]["payload"]["superseded"]
    return expired


def _remove(root: Path, position: int) -> None:
    """Let retention remove one of those that were made of an asset, in their order."""

    def change(batches: list[Json]) -> list[Json]:
        finished = [event["payload"] for _, event in events(batches, "TaskFinished")]
        made = [report for report in finished if report["task_key"] == "fan/root:materialize"]
        _removed(batches)[0]["materialization_id"] = made[position]["attempt_id"]
        return batches

    change_log(root, change)
