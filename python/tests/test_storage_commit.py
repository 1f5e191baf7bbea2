"""Outputs are committed once, whatever happens in between."""

from __future__ import annotations

import builtins
import errno
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from crashing import Steps, crashes, stepping
from servo.storage import (
    Stored,
    Unsynced,
    commit,
    committed,
    committed_piece,
    discard,
    load,
    quarantine,
    store,
)
from servo.storage.errors import CommitConflict, NothingStaged

RECORD = {"materialization_id": "01J8", "attempt": 1}
FILES = ["_commit.json", "_metadata.json", "data.json"]
STEPS = [
    (builtins, "open"),
    *((os, name) for name in ("open", "write", "fsync", "link", "mkdir", "rename", "rmdir", "unlink")),
]


class Lake:
    """An asset with one attempt."""

    def __init__(self, directory: Path, keep: int) -> None:
        """Keep it below a directory; values of up to a size are not staged."""
        self.staging = directory / "staging" / "attempt=1"
        self.final = directory / "materializations" / "01J8"
        self.aside = directory / "quarantine" / "run"
        self.keep = keep
        self.stored = Stored("none")

    def stage(self, value: object) -> Lake:
        """Store a value."""
        self.stored = store(value, str(self.staging), keep=self.keep)
        return self

    def commit(self, **record: object) -> Stored:
        """Commit what is staged."""
        return commit(self.stored, str(self.staging), str(self.final), {**RECORD, **record})

    def quarantine(self, *checks: str) -> None:
        """Put aside what is staged."""
        quarantine(self.stored, str(self.staging), str(self.aside), {"checks": list(checks)})

    def value(self) -> object:
        """Load what is committed."""
        return load([committed_piece(None, str(self.final))], None, single=True)

    def files(self, directory: Path | None = None) -> list[str]:
        """List the names of files."""
        return sorted(path.name for path in (directory or self.final).iterdir())


@pytest.fixture(params=[0, 100], ids=["staged", "kept"])
def keep(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def lake(tmp_path: Path, keep: int) -> Lake:
    return Lake(tmp_path, keep)


def test_a_committed_output_is_whole_and_nothing_is_left_in_staging(lake: Lake) -> None:
    lake.stage([1]).commit()
    assert lake.files() == FILES
    assert not lake.staging.exists()
    found = committed(str(lake.final))
    assert found == json.loads(json.dumps({**lake.stored.to_json(), **RECORD}))
    assert lake.value() == [1]
    # One file with two names: there is less to sync.
    assert (lake.final / "_metadata.json").samefile(lake.final / "_commit.json")


def test_nothing_is_committed_before_it_is(lake: Lake) -> None:
    lake.stage([1])
    assert committed(str(lake.final)) is None


def test_a_second_commit_with_the_same_record_changes_nothing(lake: Lake) -> None:
    lake.stage([1]).commit()
    first, before = lake.stored, (lake.final / "_commit.json").stat()
    lake.commit()
    assert lake.stage([2]).commit() == Stored(**first.to_json())  # type: ignore[arg-type]
    assert (lake.final / "_commit.json").stat().st_mtime_ns == before.st_mtime_ns
    assert lake.value() == [1]
    assert not lake.staging.exists()


def test_a_commit_of_somebody_else_is_an_error_and_stays(lake: Lake) -> None:
    lake.stage([1]).commit()
    lake.stage([2])
    with pytest.raises(CommitConflict, match=r"01J8 is committed already, with another record: .*attempt.:1"):
        lake.commit(attempt=2)
    assert lake.value() == [1]
    assert lake.staging.exists() is (lake.keep == 0)


def test_a_commit_that_somebody_else_has_begun_is_not_finished_for_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 0).stage([1])
    lake.commit()
    (lake.final / "_commit.json").unlink()
    with pytest.raises(CommitConflict):
        lake.commit(attempt=2)
    assert committed(str(lake.final)) is None
    lake.commit()
    assert lake.value() == [1]


def test_there_must_be_something_to_commit(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 0).stage([1])
    discard(str(lake.staging))
    with pytest.raises(NothingStaged, match=r"nothing is staged in .*, and .* has no _commit\.json"):
        lake.commit()
    lake.final.mkdir(parents=True)
    with pytest.raises(NothingStaged):
        lake.commit()


def test_what_an_earlier_try_has_left_is_replaced(lake: Lake) -> None:
    lake.final.mkdir(parents=True)
    (lake.final / "data.parquet").write_bytes(b"half")
    lake.stage([1]).commit()
    assert lake.files() == FILES


def test_all_files_and_directories_are_synced_once_and_after_everything_else(lake: Lake) -> None:
    lake.final.parent.mkdir(parents=True)
    lake.stage([1])
    steps = Steps()
    with stepping(steps, *STEPS):
        lake.commit()
    # The data, what is known of it, their directory, and the one above.
    assert Counter(steps.names)["fsync"] == 4
    assert steps.names[-4:] == ["fsync"] * 4
    assert steps.names.index("link") < steps.names.index("fsync")


def test_new_directories_above_are_synced_too(lake: Lake) -> None:
    deeper = Lake(lake.staging / "new" / "newer", lake.keep)
    deeper.staging.mkdir(parents=True)
    steps = Steps()
    with stepping(steps, *STEPS):
        deeper.stage([1]).commit()
    assert Counter(steps.names)["fsync"] == 5


def test_several_outputs_are_synced_together(tmp_path: Path, keep: int) -> None:
    lakes = [Lake(tmp_path / str(number), keep) for number in range(40)]
    unsynced = Unsynced()
    steps = Steps()
    with stepping(steps, *STEPS):
        for lake in lakes:
            lake.stage([1])
            commit(lake.stored, str(lake.staging), str(lake.final), RECORD, unsynced)
            assert lake.value() == [1]
        unsynced.sync()
    # Four each, two directories above that are new, and now and then the one that is above all of them.
    assert 40 * 5 <= Counter(steps.names)["fsync"] <= 40 * 6 + 5
    assert not _descriptors_below(tmp_path)


def _descriptors_below(directory: Path) -> list[str]:
    own = Path("/proc/self/fd")
    links = [os.readlink(own / name) for name in os.listdir(own) if (own / name).is_symlink()]  # noqa: PTH115, PTH208
    return [link for link in links if link.startswith(str(directory))]


def test_a_commit_that_crashed_anywhere_can_be_tried_again(tmp_path: Path, keep: int) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path, keep)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)), keep)
        lake.stage([1])
        with stepping(steps, *STEPS):
            lake.commit()

    for steps in crashes(run):
        if committed(str(lake.final)) is not None:
            assert lake.value() == [1], steps.names
        lake.commit()
        assert lake.files() == FILES, steps.names
        assert lake.value() == [1], steps.names
        assert not lake.staging.exists(), steps.names


def test_after_a_crash_anywhere_the_attempt_can_run_anew(tmp_path: Path, keep: int) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path, keep)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)), keep)
        with stepping(steps, *STEPS):
            lake.stage([1])
            lake.commit()

    for steps in crashes(run):
        was_committed = committed(str(lake.final)) is not None
        lake.stage([2]).commit()
        assert lake.files() == FILES, steps.names
        assert lake.value() == ([1] if was_committed else [2]), steps.names
        assert not lake.staging.exists(), steps.names


def test_quarantine_keeps_the_data_and_says_why(lake: Lake) -> None:
    lake.stage([1])
    for _ in range(2):
        lake.quarantine("unique")
    assert lake.files(lake.aside) == ["_metadata.json", "_reason.json", "data.json"]
    reason = json.loads((lake.aside / "_reason.json").read_text())
    assert (reason["checks"], reason["format"]) == (["unique"], "json")
    assert not lake.staging.exists()
    lake.stage([2])
    with pytest.raises(CommitConflict, match="holds something else for review"):
        lake.quarantine("row_count")


def test_a_quarantine_that_crashed_anywhere_can_be_tried_again(tmp_path: Path, keep: int) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path, keep)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)), keep)
        lake.stage([1])
        with stepping(steps, *STEPS):
            lake.quarantine()

    for steps in crashes(run):
        lake.quarantine()
        assert lake.files(lake.aside) == ["_metadata.json", "_reason.json", "data.json"], steps.names
        assert not lake.staging.exists(), steps.names


def test_discarding_removes_what_is_staged_and_can_be_done_twice(tmp_path: Path) -> None:
    lake = Lake(tmp_path, 0).stage([1])
    for _ in range(2):
        discard(str(lake.staging))
        assert not lake.staging.exists()
    assert lake.staging.parent.exists()


def test_a_commit_to_another_disk_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path, 0)

    def rename(source: str, _target: str) -> None:
        raise OSError(errno.EXDEV, "cross-device link", source)

    monkeypatch.setattr(os, "rename", rename)
    lake.stage([1]).commit()
    assert lake.files() == FILES
    assert not lake.staging.exists()


def test_a_disk_without_links_will_do(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, _target: str) -> None:
        raise OSError(errno.EPERM, "no links", source)

    monkeypatch.setattr(os, "link", link)
    lake.stage([1]).commit()
    lake.commit()
    assert lake.files() == FILES


def test_a_disk_that_cannot_sync_is_an_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    lake.stage([1])
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="the disk is broken"):
        lake.commit()
    monkeypatch.undo()
    assert not _descriptors_below(lake.final)


def test_a_disk_that_is_full_is_not_filled_with_what_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path, 100).stage([1])

    def write(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="no space"):
        lake.commit()
    monkeypatch.undo()
    assert not lake.final.exists()
    lake.commit()
    assert lake.value() == [1]
