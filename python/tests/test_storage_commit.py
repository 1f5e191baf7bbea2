"""Outputs are committed once, whatever happens in between."""

from __future__ import annotations

import builtins
import errno
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from crashing import Steps, crashes, stepping
from servo.storage import Piece, commit, committed, discard, load, quarantine, store
from servo.storage.errors import CommitConflict, NothingStaged

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"materialization_id": "01J8", "attempt": 1}
FILES = ["_commit.json", "_metadata.json", "data.json"]
STEPS = [
    (builtins, "open"),
    *((os, name) for name in ("fsync", "link", "mkdir", "rename", "rmdir", "unlink")),
]


class Lake:
    """An asset with one attempt."""

    def __init__(self, directory: Path) -> None:
        """Keep it below a directory."""
        self.staging = directory / "staging" / "attempt=1"
        self.final = directory / "materializations" / "01J8"
        self.aside = directory / "quarantine" / "run"

    def stage(self, value: object) -> Lake:
        """Store a value."""
        store(value, str(self.staging))
        return self

    def commit(self, **record: object) -> None:
        """Commit what is staged."""
        commit(str(self.staging), str(self.final), {**RECORD, **record})

    def value(self) -> object:
        """Load what is committed."""
        return load([Piece(None, str(self.final), "json")], None, single=True)

    def files(self, directory: Path | None = None) -> list[str]:
        """List the names of files."""
        return sorted(path.name for path in (directory or self.final).iterdir())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_committed_output_is_whole_and_nothing_is_left_in_staging(lake: Lake) -> None:
    lake.stage([1]).commit()
    assert lake.files() == FILES
    assert not lake.staging.exists()
    assert committed(str(lake.final)) == RECORD
    assert lake.value() == [1]


def test_nothing_is_committed_before_it_is(lake: Lake) -> None:
    lake.stage([1])
    assert committed(str(lake.final)) is None


def test_a_second_commit_with_the_same_record_changes_nothing(lake: Lake) -> None:
    lake.stage([1]).commit()
    before = (lake.final / "_commit.json").stat()
    lake.commit()
    lake.stage([2]).commit()
    assert (lake.final / "_commit.json").stat().st_mtime_ns == before.st_mtime_ns
    assert lake.value() == [1]
    assert not lake.staging.exists()


def test_a_commit_of_somebody_else_is_an_error_and_stays(lake: Lake) -> None:
    lake.stage([1]).commit()
    lake.stage([2])
    with pytest.raises(CommitConflict, match=r"01J8 is committed already, with another record: .*attempt.:1"):
        lake.commit(attempt=2)
    assert lake.value() == [1]
    assert lake.staging.exists()


def test_a_commit_that_somebody_else_has_begun_is_not_finished_for_them(lake: Lake) -> None:
    lake.stage([1])
    steps = Steps()
    with stepping(steps, *STEPS):
        lake.commit()
    lake.final.rename(lake.staging)
    (lake.staging / "_commit.json").rename(lake.staging / "_commit.json.pending")
    lake.staging.rename(lake.final)
    with pytest.raises(CommitConflict):
        lake.commit(attempt=2)
    assert committed(str(lake.final)) is None


def test_there_must_be_something_to_commit(lake: Lake) -> None:
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


def test_an_output_costs_six_syncs_and_one_for_every_new_directory(lake: Lake) -> None:
    lake.final.parent.mkdir(parents=True)
    lake.stage([1])
    steps = Steps()
    with stepping(steps, *STEPS):
        lake.commit()
    assert Counter(steps.names) == {"fsync": 6, "open": 2, "rename": 1, "link": 1, "unlink": 1}
    assert steps.names.index("rename") == 5
    assert steps.names.index("link") == 6
    deeper = Lake(lake.final.parent / "new" / "newer")
    deeper.stage([1])
    steps = Steps()
    with stepping(steps, *STEPS):
        deeper.commit()
    assert Counter(steps.names)["fsync"] == 7


def test_a_commit_that_crashed_anywhere_can_be_tried_again(tmp_path: Path) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)))
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


def test_after_a_crash_anywhere_the_attempt_can_run_anew(tmp_path: Path) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)))
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
        quarantine(str(lake.staging), str(lake.aside), {"checks": ["unique"]})
    assert lake.files(lake.aside) == ["_metadata.json", "_reason.json", "data.json"]
    assert (lake.aside / "_reason.json").read_text() == '{"checks":["unique"]}'
    assert not lake.staging.exists()
    lake.stage([2])
    with pytest.raises(CommitConflict, match="holds something else for review"):
        quarantine(str(lake.staging), str(lake.aside), {"checks": ["row_count"]})


def test_a_quarantine_that_crashed_anywhere_can_be_tried_again(tmp_path: Path) -> None:
    tries = iter(range(1000))
    lake = Lake(tmp_path)

    def run(steps: Steps) -> None:
        nonlocal lake
        lake = Lake(tmp_path / str(next(tries)))
        lake.stage([1])
        with stepping(steps, *STEPS):
            quarantine(str(lake.staging), str(lake.aside), {})

    for steps in crashes(run):
        quarantine(str(lake.staging), str(lake.aside), {})
        assert lake.files(lake.aside) == ["_metadata.json", "_reason.json", "data.json"], steps.names
        assert not lake.staging.exists(), steps.names


def test_discarding_removes_what_is_staged_and_can_be_done_twice(lake: Lake) -> None:
    lake.stage([1])
    for _ in range(2):
        discard(str(lake.staging))
        assert not lake.staging.exists()
    assert lake.staging.parent.exists()


def test_a_commit_to_another_disk_copies(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_disk_that_cannot_sync_is_an_error_and_nothing_counts(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(_descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    lake.stage([1])
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="the disk is broken"):
        lake.commit()
    assert committed(str(lake.final)) is None
