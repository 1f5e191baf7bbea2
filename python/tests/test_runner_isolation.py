"""Tasks in a process of their own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from running import request, started, stored, until_gone

if TYPE_CHECKING:
    from pathlib import Path


def test_a_task_of_its_own_process_leaves_nothing_behind(tmp_path: Path) -> None:
    text = """
import os
count = 0
@servo.asset
def counts(ctx):
    global count
    count += 1
    os.environ["LEFT"] = "behind"
    print("printed")
    ctx.log.info("logged")
    ctx.progress(1)
    return [count, os.getpid()]
@servo.asset
def looks():
    return [count, os.environ.get("LEFT")]
"""
    with started(tmp_path, text) as runner:
        pids = set()
        for _ in range(3):
            finished = runner.run("counts", isolation="process")
            assert finished["outcome"] == "SUCCEEDED", finished
            count, pid = stored(tmp_path, "default.counts")
            pids.add(pid)
            assert count == 1
            (tmp_path / "lake/final/default.counts/_commit.json").unlink()
        assert len(pids - {runner.process.pid}) == 3
        assert len(runner.of_type("log")) == len(runner.of_type("progress")) == 3
        assert runner.output == "printed\n" * 3
        assert runner.run("looks")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.looks") == [0, None]
        assert runner.exit() == 0


@pytest.mark.parametrize(
    ("body", "message", "ended"),
    [
        ("os.kill(os.getpid(), 9)", "the process of the task was ended by SIGKILL", {"signal": 9}),
        ("ctypes.string_at(0)", "the process of the task was ended by SIGSEGV", {"signal": 11}),
        ("os.abort()", "the process of the task was ended by SIGABRT", {"signal": 6}),
        (
            "os._exit(3)",
            "ended with exit code 3 and without a result: something in it calls os._exit",
            {"code": 3},
        ),
        ("os._exit(0)", "ended with exit code 0 and without a result", {"code": 0}),
    ],
)
def test_a_process_that_dies_is_reported(
    tmp_path: Path, body: str, message: str, ended: dict[str, int]
) -> None:
    text = f"import ctypes, os\n@servo.asset\ndef dies(ctx):\n    ctx.log.info('last words')\n    {body}\n"
    with started(tmp_path, text + "@servo.asset\ndef works(): ...\n") as runner:
        finished = runner.run("dies", isolation="process")
        assert finished["outcome"] == "FAILED"
        error = finished["error"]
        assert (error["code"], error["retriable"]) == ("WORKER_CRASH", True)
        assert message in error["message"]
        assert error["exit"] == ended
        assert finished["usage"]["max_rss_bytes"] > 0
        assert [log["message"] for log in runner.of_type("log")] == ["last words"]
        assert runner.run("works")["outcome"] == "SUCCEEDED"
        assert runner.exit() == 0


def test_errors_and_exits_are_told_as_of_other_tasks(tmp_path: Path) -> None:
    text = "import sys\n@servo.asset\ndef exits():\n    sys.exit(3)\n"
    with started(tmp_path, text) as runner:
        error = runner.run("exits", isolation="process")["error"]
        assert error["code"] == "USER_CODE_EXCEPTION"
        assert "exit code 3" in error["message"]


def test_a_program_that_outlives_the_task_does_not_keep_it(tmp_path: Path) -> None:
    text = """
import subprocess
@servo.asset
def leaves():
    return subprocess.Popen(["sleep", "600"], close_fds=False).pid
"""
    with started(tmp_path, text) as runner:
        assert runner.run("leaves", isolation="process")["outcome"] == "SUCCEEDED"
        os.kill(stored(tmp_path, "default.leaves"), signal.SIGKILL)


def test_sigterm_to_the_runner_alone_ends_both(tmp_path: Path) -> None:
    text = """
import os, time
@servo.asset
def slow(ctx):
    ctx.log.info("%d", os.getpid())
    time.sleep(600)
"""
    with started(tmp_path, text) as runner:
        runner.send("run", **request(tmp_path, "slow", isolation="process"))
        child = int(runner.wait_for("log")["message"])
        runner.process.terminate()
        assert runner.process.wait(timeout=120) == -signal.SIGTERM
        assert runner.receive() is None
        until_gone(child)


def test_a_supervisor_that_leaves_ends_both(tmp_path: Path) -> None:
    text = """
import os, time
@servo.asset
def talks(ctx):
    while True:
        ctx.log.info("%d", os.getpid())
        time.sleep(0.01)
"""
    with started(tmp_path, text) as runner:
        runner.send("run", **request(tmp_path, "talks", isolation="process"))
        child = int(runner.wait_for("log")["message"])
        runner.socket.close()
        assert runner.process.wait(timeout=120) == 0
        until_gone(child)
