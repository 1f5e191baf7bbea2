"""A warm runner after a task: nothing that it left behind is found by the next one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from running import error_of, started, stored

if TYPE_CHECKING:
    from pathlib import Path

LOOKS = """
import locale, logging, os, signal, socket, sys, time, warnings
@servo.asset
def looks():
    umask = os.umask(0)
    os.umask(umask)
    handler = signal.getsignal(signal.SIGUSR1)
    return [
        os.getcwd(), os.environ.get("LEFT"), "PATH" in os.environ, sys.stdout is sys.__stdout__,
        "left" in sys.path, sys.argv[1:], sys.getrecursionlimit(), umask, str(handler), len(warnings.filters),
        locale.setlocale(locale.LC_ALL), len(logging.root.handlers), logging.root.level,
        logging.root.manager.disable, len(logging.getLogger("shop").handlers), socket.getdefaulttimeout(),
        signal.getitimer(signal.ITIMER_REAL), time.localtime(0).tm_hour,
    ]
@servo.asset
def leaves():
    os.chdir("/")
    os.environ["LEFT"] = "behind"
    del os.environ["PATH"]
    sys.stdout = open(os.devnull, "w")
    sys.stderr = None
    sys.path.append("left")
    sys.argv.append("left")
    sys.setrecursionlimit(12_345)
    os.umask(0)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    warnings.simplefilter("error")
    locale.setlocale(locale.LC_ALL, "C")
    logging.basicConfig(level=1)
    logging.disable(50)
    logging.getLogger("shop").addHandler(logging.StreamHandler())
    signal.alarm(600)
    socket.setdefaulttimeout(0.001)
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
"""


def test_the_next_task_finds_everything_as_the_first_one_did(tmp_path: Path) -> None:
    with started(tmp_path, LOOKS) as runner:
        runner.run("looks")
        before = stored(tmp_path, "default.looks")
        assert runner.run("leaves")["outcome"] == "SUCCEEDED"
        runner.run("looks", attempt=2)
        assert stored(tmp_path, "default.looks") == before
        assert runner.of_type("worn") == []
        assert "surroundings.py" not in runner.output


def test_a_thread_that_is_left_running_wears_the_process_out(tmp_path: Path) -> None:
    text = """
import threading, time
@servo.asset
def leaves(config):
    threading.Thread(target=time.sleep, args=(60,), name="sleeper", daemon=config["daemon"]).start()
"""
    text = text.replace('config["daemon"]', "DAEMON").replace("def leaves(config)", "def leaves()")
    for daemon in (False, True):
        with started(tmp_path / str(daemon), text.replace("DAEMON", str(daemon))) as runner:
            assert runner.run("leaves", mark=True)["outcome"] == "SUCCEEDED"
            runner.send("scan")
            runner.wait_for("scanned")
            reasons = [frame["reason"] for frame in runner.of_type("worn")]
            assert reasons == ([] if daemon else ["the thread sleeper is still running"])


BEARS = """
import os
import polars
FRAME = {"a": list(range(100_000)), "b": list(range(100_000))}
def total():
    return polars.DataFrame(FRAME).lazy().group_by("b").agg(polars.col("a").sum()).collect().height
@servo.asset
def shared():
    return total()
@servo.asset(isolation="process")
def isolated():
    return [total(), os.getpid()]
"""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sys.modules.update({f'made_{n}': types.ModuleType('made') for n in range(3_000)})", "modules"),
        ("sys.stdout.close()", "sys.stdout is closed"),
    ],
    ids=["modules", "stdout"],
)
def test_what_cannot_be_put_back_wears_the_process_out(tmp_path: Path, line: str, why: str) -> None:
    text = f"""
import sys, types
@servo.asset
def leaves():
    {line}
@servo.asset
def clean():
    return 1
"""
    with started(tmp_path, text) as runner:
        assert runner.run("clean")["outcome"] == "SUCCEEDED"
        assert runner.of_type("worn") == []
        runner.run("leaves")
        runner.send("scan")
        runner.wait_for("scanned")
        (worn,) = runner.of_type("worn")
        assert why in worn["reason"]


def test_an_isolated_task_does_not_hang_after_threads_of_a_library_have_run(tmp_path: Path) -> None:
    with started(tmp_path, BEARS) as runner:
        runner.socket.settimeout(60)
        pids = set()
        for attempt in range(1, 4):
            assert runner.run("shared", attempt=attempt)["outcome"] == "SUCCEEDED"
            finished = runner.run("isolated", attempt=attempt, isolation="process")
            assert finished["outcome"] == "SUCCEEDED", finished
            height, pid = stored(tmp_path, "default.isolated")
            assert height == 100_000
            pids.add(pid)
        assert len(pids) == 3
        assert runner.exit() == 0


def test_a_function_that_waits_for_all_its_children_does_not_wait_for_the_fork_server(tmp_path: Path) -> None:
    text = """
import os
@servo.asset
def waits():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    try:
        os.wait()
    except ChildProcessError:
        return "no other"
@servo.asset(isolation="process")
def isolated(): ...
"""
    with started(tmp_path, text) as runner:
        assert runner.run("waits")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.waits") == "no other"
        assert runner.run("isolated", isolation="process")["outcome"] == "SUCCEEDED"


def test_a_fork_server_that_dies_is_told_and_wears_the_process_out(tmp_path: Path) -> None:
    text = """
import os, signal
@servo.asset(isolation="process")
def kills():
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    with started(tmp_path, text) as runner:
        error = runner.run("kills", isolation="process")["error"]
        assert (error["code"], error["message"]) == (
            "WORKER_CRASH",
            "the process that isolated tasks are forked from has died",
        )
        assert runner.wait_for("worn")["reason"] == error["message"]


@pytest.mark.parametrize("isolation", ["shared", "process"])
def test_memory_beyond_the_limit_is_refused_and_the_next_task_has_its_own(
    tmp_path: Path, isolation: str
) -> None:
    text = """
@servo.asset(isolation="ISOLATION")
def takes():
    return len(bytearray(600_000_000))
""".replace("ISOLATION", isolation)
    limits = {"memory_bytes": 300_000_000, "cpu_millicores": 500}
    with started(tmp_path, text) as runner:
        error = error_of(runner.run("takes", isolation=isolation, compute=limits))
        assert (error["code"], error["retriable"]) == ("OUT_OF_MEMORY", True)
        assert runner.run("takes", isolation=isolation, attempt=2)["outcome"] == "SUCCEEDED"


def test_cores_beyond_the_limit_are_not_used(tmp_path: Path) -> None:
    text = "import os\n@servo.asset\ndef cores():\n    return len(os.sched_getaffinity(0))\n"
    with started(tmp_path, text) as runner:
        runner.run("cores", compute={"cpu_millicores": 500})
        assert stored(tmp_path, "default.cores") == 1
        runner.run("cores", attempt=2)
        assert stored(tmp_path, "default.cores") >= 1


def test_a_request_that_is_too_long_for_a_frame_is_read_from_a_file(tmp_path: Path) -> None:
    from running import request  # noqa: PLC0415 - only here

    with started(tmp_path, "@servo.asset\ndef made(pieces: list = ()):\n    return 1\n") as runner:
        asked = request(tmp_path, "made")
        file = tmp_path / "request.json"
        file.write_text(json.dumps(asked))
        runner.send("run", request=str(file), attempt_id=asked["attempt_id"], mark=True)
        assert runner.wait_for("finished")["outcome"] == "SUCCEEDED"
        # The mark comes after the frame; when the process has ended it has been written.
        assert runner.exit() == 0
        assert runner.output == "\x01servo end A1\n"
