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


def change_row(root: Path, table: str, change: Callable[[Json], None]) -> None:
    """Change a row of a table, and let the manifests say that it is right."""
    newest = max(root.glob("manifests/orchestration/*.json"))
    manifest = json.loads(newest.read_bytes())
    hot = [part["tables"].get(table, []) for part in manifest["l0_deltas"]]
    file = [file for files in [*hot, manifest["history"].get(table, [])] for file in files][-1]
    path = root / file["path"]
    found = pq.read_table(path)
    rows = found.to_pylist()
    change(rows[-1])
    pq.write_table(pa.Table.from_pylist(rows, schema=found.schema), path)
    file["bytes"], file["sha256"] = path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
    newest.write_text(json.dumps(manifest), "utf-8")
    shutil.copyfile(newest, root / "manifests" / "orchestration.manifest.json")


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


def delete_directory(root: Path) -> None:
    """Delete a materialization."""
    shutil.rmtree(one(root, "assets/fan/late/materializations/*"))


def copy_directory(root: Path) -> None:
    """Let there be a materialization that the log does not count."""
    path = one(root, "assets/days/total/**/materializations/*")
    shutil.copytree(path, path.with_name("01ARZ3NDEKTSV4RRFFQ69G5FAV"))


def leave_in_quarantine(root: Path) -> None:
    """Let something be in quarantine that does not wait."""
    path = one(root, "assets/trouble/guarded/**/quarantine/*")
    shutil.copytree(path, path.with_name("01ARZ3NDEKTSV4RRFFQ69G5FAV"))


def empty_quarantine(root: Path) -> None:
    """Delete what waits for review."""
    shutil.rmtree(one(root, "assets/trouble/guarded/**/quarantine/*"))


def turn_pointer(root: Path) -> None:
    """Let the latest be something else."""
    path = one(root, "assets/fan/root/latest.json")
    pointer = json.loads(path.read_bytes()) | {"materialization_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
    path.write_text(json.dumps(pointer), "utf-8")


def delete_pointer(root: Path) -> None:
    """Let nothing be the latest."""
    one(root, "assets/fan/root/latest.json").unlink()


def leave_staged(root: Path) -> None:
    """Leave something in staging."""
    (root / "staging" / "run_a" / "t_b").mkdir(parents=True)


def leave_unfinished(root: Path) -> None:
    """Leave a file that was not finished."""
    (root / "manifests" / ".tmp-1").touch()


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
    """Lose the last batch."""
    change_log(root, lambda batches: batches[:-1])


def drop_batch(root: Path) -> None:
    """Lose a batch in the middle."""
    change_log(root, lambda batches: batches[:5] + batches[6:])


def repeat_batch(root: Path) -> None:
    """Write a batch twice."""
    change_log(root, lambda batches: [*batches[:6], json.loads(json.dumps(batches[5])), *batches[6:]])


def _drop(kind: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        def change(batches: list[Json]) -> list[Json]:
            owner, event = events(batches, kind)[-1]
            owner.remove(event)
            return batches

        change_log(root, change)

    damage.__name__ = f"drop_{kind}"
    return damage


drop_finished = _drop("TaskFinished")
drop_dispatched = _drop("DispatchRequested")
drop_plan = _drop("PlanCreated")


def repeat_finished(root: Path) -> None:
    """Report an attempt twice."""

    def change(batches: list[Json]) -> list[Json]:
        _, event = events(batches, "TaskFinished")[0]
        batches[-1]["events"].append(event | {"event_id": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"})
        return batches

    change_log(root, change)


def repeat_dispatch(root: Path) -> None:
    """Dispatch a task again that has succeeded."""

    def change(batches: list[Json]) -> list[Json]:
        _, event = events(batches, "DispatchRequested")[0]
        payload = event["payload"] | {"attempt": event["payload"]["attempt"] + 1}
        again = event | {"event_id": "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "payload": payload}
        batches[-1]["events"].append(again)
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
    change_row(root, "tasks", lambda row: row.update(state="RUNNING"))


def change_run(root: Path) -> None:
    """Let a table say that a run has another state."""
    change_row(root, "runs", lambda row: row.update(state="SUCCEEDED"))


def change_made(root: Path) -> None:
    """Let a table say that a materialization has other contents."""
    change_row(root, "materializations", lambda row: row.update(content_hash="sha256:0"))


def lose_lines(root: Path) -> None:
    """Lose lines of a log of a task."""
    path = max(root.glob("logs/*/*/*.jsonl"), key=lambda path: path.stat().st_size)
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:-5]), "utf-8")


def repeat_lines(root: Path) -> None:
    """Keep a line of a log of a task twice."""
    path = max(root.glob("logs/*/*/*.jsonl"), key=lambda path: path.stat().st_size)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines, lines[10]]), "utf-8")
