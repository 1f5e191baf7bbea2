"""A supervisor that is gone takes its runners and all that they have started with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from running import Runner, request, until_gone
from scanning import SOURCE, write

# None of these gives way to another thread, or to a signal handler of Python, before it is done.
STUCK = {
    "matches": "re.match('(a*)*b', 'a' * 40)",
    "counts": "sum(range(10 ** 12))",
    "forks": "sum(range(10 ** 12)) if os.fork() else time.sleep(600)",
    "starts": "subprocess.Popen(['sleep', '600'], close_fds=False); sum(range(10 ** 12))",
}
MODULE = "import os, re, signal, subprocess, time\nimport servo\n" + "\n".join(
    f"@servo.asset\ndef {name}(ctx):\n    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
    f"    ctx.log.info('now')\n    {body}\n"
    for name, body in STUCK.items()
)


def group_of(leader: int) -> list[int]:
    """Give the processes of a group."""
    listed = subprocess.run(["ps", "-eo", "pid,pgid"], capture_output=True, text=True, check=True)  # noqa: S607
    rows = (line.split() for line in listed.stdout.splitlines()[1:])
    return [int(process) for process, group in rows if int(group) == leader]


def wait_for_group(leader: int, size: int) -> list[int]:
    """Wait until a group has as many processes as it will."""
    while len(found := group_of(leader)) < size:
        pass
    return found


@pytest.mark.parametrize("isolation", ["shared", "process"])
@pytest.mark.parametrize("function", STUCK)
def test_a_function_that_holds_the_interpreter_dies_with_the_supervisor(
    tmp_path: Path, function: str, isolation: str
) -> None:
    with Runner(write(tmp_path, {"demo.py": MODULE})) as runner:
        assert runner.load()["errors"] == []
        runner.send("run", **request(tmp_path, function, isolation=isolation))
        assert runner.wait_for("log")["message"] == "now"
        more = (function in {"forks", "starts"}) + (isolation == "process")
        # The runner and the guard of its lifeline.
        processes = wait_for_group(runner.process.pid, 2 + more)
        runner.let_go()
        assert runner.process.wait(timeout=120) == -9
        for process in processes:
            until_gone(process)


def test_what_a_runner_has_started_dies_with_the_supervisor_also_if_the_runner_died_before(
    tmp_path: Path,
) -> None:
    with Runner(write(tmp_path, {"demo.py": MODULE})) as runner:
        assert runner.load()["errors"] == []
        runner.send("run", **request(tmp_path, "starts"))
        assert runner.wait_for("log")["message"] == "now"
        processes = wait_for_group(runner.process.pid, 3)
        runner.process.kill()
        assert runner.process.wait(timeout=120) == -9
        left = [process for process in processes if process != runner.process.pid]
        assert all(Path(f"/proc/{process}").exists() for process in left)
        runner.let_go()
        for process in left:
            until_gone(process)


def test_a_supervisor_that_was_gone_before_the_start_is_noticed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "servo.runner", "--fd", "0", "--lifeline", str(reader)],
        stdin=subprocess.PIPE,
        pass_fds=[reader],
        start_new_session=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=False,
        timeout=120,
    )
    os.close(reader)
    assert done.returncode == -9


def test_a_runner_that_does_not_lead_its_group_ends_alone(tmp_path: Path) -> None:
    runner = "os.execv(sys.executable, [sys.executable, '-m', 'servo.runner', *sys.argv[1:]])"
    # The parent leads the group, and tells how its child has ended.
    program = f"import os, sys\nif os.fork() == 0:\n    {runner}\nos._exit(os.wait()[1])\n"
    with Runner(write(tmp_path, {}), "-c", program) as started:
        started.wait_for("hello")
        started.let_go()
        assert started.process.wait(timeout=120) == 9


def test_where_the_kernel_sends_no_signals_a_thread_does(tmp_path: Path) -> None:
    program = "import fcntl, runpy; del fcntl.F_SETSIG; runpy.run_module('servo.runner', run_name='__main__')"
    with Runner(write(tmp_path, {"demo.py": ""}), "-c", program) as runner:
        runner.wait_for("hello")
        assert runner.load()["errors"] == []
        runner.let_go()
        assert runner.process.wait(timeout=120) == -9
