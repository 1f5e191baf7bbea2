"""The conversation of a runner with its supervisor, whatever user code does in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from running import Runner, request, started, stored
from scanning import SOURCE, write

if TYPE_CHECKING:
    from pathlib import Path

FLIGHTS = """
@servo.asset
def flights():
    return [3, 0, 5]
"""


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def test_a_runner_greets_loads_runs_and_exits(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        hello = runner.frames[0]
        assert hello["pid"] == runner.process.pid
        assert hello["python"] == ".".join(map(str, sys.version_info[:3]))
        for _ in range(3):
            finished = runner.run("flights")
            assert finished["outcome"] == "SUCCEEDED"
            assert "error" not in finished
        assert stored(tmp_path, "default.flights") == [3, 0, 5]
        assert runner.exit() == 0
        assert runner.errors == ""


def test_a_runner_ends_when_the_socket_is_closed(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.socket.close()
        assert runner.process.wait(timeout=120) == 0


def test_sigterm_ends_a_task_at_once_and_says_nothing(tmp_path: Path) -> None:
    text = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: None)  # does not count
@servo.asset
def slow(ctx):
    ctx.log.info("here")
    time.sleep(600)
"""
    with started(tmp_path, text) as runner:
        runner.send("run", **request(tmp_path, "slow"))
        runner.wait_for("log")
        runner.process.terminate()
        assert runner.process.wait(timeout=120) == -signal.SIGTERM
        assert runner.receive() is None


def test_frames_may_come_in_pieces_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.send("dance", steps=3)
        data = frame(b'{"type":"scan","later":true}')
        for byte in range(len(data)):
            runner.socket.sendall(data[byte : byte + 1])
        scanned = runner.wait_for("scanned")
        assert scanned["digest"].startswith("sha256:")
        assert [asset["key"] for asset in scanned["manifest"]["assets"]] == ["default/flights"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (frame(b"{"), "a frame is not JSON"),
        (frame(b"[]"), "a JSON object with a type"),
        (frame(b'{"kind":"run"}'), "a JSON object with a type"),
        (frame(b"\xff"), "a frame is not JSON"),
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes was announced"),
    ],
)
def test_what_is_no_frame_ends_the_runner(tmp_path: Path, data: bytes, message: str) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.socket.sendall(data)
        assert runner.process.wait(timeout=120) == 2
        assert message in runner.errors


@pytest.mark.parametrize("data", [b"\0\0", b"\0\0\0\x09{"])
def test_a_connection_that_ends_inside_of_a_frame_ends_the_runner(tmp_path: Path, data: bytes) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.socket.sendall(data)
        runner.socket.close()
        assert runner.process.wait(timeout=120) == 2
        assert "the connection ended" in runner.errors


@pytest.mark.parametrize(
    "arguments",
    [[], ["--fd"], ["--fd", "x"], ["--fd=99"], ["3"], ["--fd=0", "--lifeline=99"], ["--fd=0", "--life=0"]],
)
def test_a_wrong_command_line_is_explained(arguments: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "servo.runner", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 2
    assert "usage: python -m servo.runner --fd N [--lifeline M]" in done.stderr


def test_greeting_imports_next_to_nothing() -> None:
    program = "import servo.runner.loop, sys\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    loaded = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    bare = subprocess.run(
        [sys.executable, "-c", "import sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    names = ("process", "runner", "runner.frames", "runner.loop", "runner.marks")
    ours = {"servo", "__future__", *(f"servo.{name}" for name in names)}
    assert set(loaded.stdout.split()) - set(bare.stdout.split()) <= ours


def test_nothing_is_run_before_a_project_is_loaded(tmp_path: Path) -> None:
    with Runner(write(tmp_path, {"demo.py": ""})) as runner:
        finished = runner.run("flights")
        assert finished["error"]["code"] == "INTERNAL_ERROR"
        runner.send("scan")
        assert "load one first" in runner.wait_for("scanned")["errors"][0]["message"]


def test_a_runner_holds_one_project(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        assert runner.load()["errors"] == []
        runner.send("load", project="/")
        (error,) = runner.wait_for("loaded")["errors"]
        assert "start another for /" in error["message"]
        assert runner.run("flights")["outcome"] == "SUCCEEDED"


def test_a_task_that_is_wrong_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, FLIGHTS) as runner:
        runner.send("run", run_id="r")
        error = runner.wait_for("finished")["error"]
        assert (error["code"], error["retriable"]) == ("INTERNAL_ERROR", True)
        assert "without its field task_key" in error["message"]
        assert "makes nothing" in runner.run("flights", outputs=[])["error"]["message"]
        wrong = runner.run("flights", partition={"key": "nonsense"})["error"]
        assert "nonsense" in wrong["message"]


def test_user_code_has_no_input_and_its_output_is_its_own(tmp_path: Path) -> None:
    text = """
import sys
print("loading é \\udce9")
@servo.asset
def asks():
    sys.stderr.write("to stderr\\n")
    return sys.stdin.read()
@servo.asset
def waits():
    input("Name: ")
"""
    with started(tmp_path, text) as runner:
        assert runner.run("asks")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.asks") == ""
        assert runner.output == "loading é \\udce9\n"
        assert runner.errors == "to stderr\n"
        assert "asks for input" in runner.run("waits")["error"]["message"]


def test_a_flood_of_prints_is_there_before_the_task_is_finished(tmp_path: Path) -> None:
    text = """
@servo.asset
def talks():
    for number in range(100_000):
        print("line", number)
    print("no line break", end="")
"""
    with started(tmp_path, text) as runner:
        assert runner.run("talks")["outcome"] == "SUCCEEDED"
        lines = runner.output.split("\n")
        assert lines[-2:] == ["line 99999", "no line break"]
        assert len(lines) == 100_001


def test_bytes_that_are_no_text_are_passed_on_as_they_are(tmp_path: Path) -> None:
    text = """
import os, subprocess, sys
@servo.asset
def talks(ctx):
    sys.stdout.buffer.write(b"caf\\xe9\\n")
    sys.stdout.buffer.flush()
    os.write(2, b"\\xff\\xfe\\x00\\n")
    subprocess.run(["printf", "\\\\377"])
    ctx.log.info(os.fsdecode(b"caf\\xe9"), extra={"of": os.fsdecode(b"\\xe9")})
    ctx.progress(0.5, os.fsdecode(b"\\xe9"))
    ctx.metadata(name=os.fsdecode(b"\\xe9"), **{os.fsdecode(b"\\xe9"): b"\\xff"})
    raise OSError(2, "gone", os.fsdecode(b"caf\\xe9"))
"""
    with started(tmp_path, text) as runner:
        finished = runner.run("talks", mark=True)
        assert (finished["outcome"], finished["error"]["code"]) == ("FAILED", "USER_CODE_EXCEPTION")
        assert "caf\\udce9" in finished["error"]["message"]
        assert runner.of_type("log")[0]["message"] == "caf\\udce9"
        assert runner.exit() == 0
        assert runner.raw(1) == b"caf\xe9\n\xff\x01servo end A1\n"
        assert runner.raw(2) == b"\xff\xfe\x00\n\x01servo end A1\n"


def test_lines_come_as_fast_as_they_are_read_and_none_is_lost(tmp_path: Path) -> None:
    text = """
import subprocess, sys, threading
def talk(name, to):
    for number in range(20_000):
        print(name, number, "x" * 50, file=to)
@servo.asset
def talks(ctx):
    threads = [threading.Thread(target=talk, args=[name, sys.stdout]) for name in "ab"]
    for thread in threads: thread.start()
    talk("e", sys.stderr)
    for number in range(1000): ctx.log.info("%d", number)
    for thread in threads: thread.join()
    subprocess.run(["seq", "10000"])
"""
    reader, writer = os.pipe()
    with started(tmp_path, text, stdout=writer) as runner, ThreadPoolExecutor() as pool:
        os.close(writer)
        reading = pool.submit(lambda: _read_all(reader))
        for attempt in ("A1", "A2"):
            assert runner.run("talks", mark=True, attempt_id=attempt)["outcome"] == "SUCCEEDED"
        assert runner.exit() == 0
        lines = reading.result().decode().split("\n")
        ends = [number for number, line in enumerate(lines) if line.startswith("\x01")]
        assert [lines[end] for end in ends] == ["\x01servo end A1", "\x01servo end A2"]
        for own in (lines[: ends[0]], lines[ends[0] + 1 : ends[1]]):
            assert len(own) == 50_000
            for name in "ab":
                said = [int(line.split()[1]) for line in own if line.startswith(name)]
                assert said == list(range(20_000))
            assert own[-10_000:] == [str(number) for number in range(1, 10_001)]
        assert len(runner.of_type("log")) == 2_000
        assert runner.errors.count("\n") == 40_002


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_a_mark_follows_all_that_an_attempt_has_printed(tmp_path: Path) -> None:
    text = """
import subprocess, sys
@servo.asset
def talks():
    print("one")
    print("half", end="", flush=True)
    subprocess.run(["echo", " a line"])
    sys.stderr.write("no end")
@servo.asset
def fails():
    raise ValueError("x")
"""
    with started(tmp_path, text) as runner:
        runner.run("talks", mark=True, attempt_id="A1")
        runner.run("fails", mark=True, attempt_id="A2")
        runner.run("talks", mark=True, attempt_id="A3", isolation="process")
        runner.run("talks", attempt_id="A4")
        assert runner.exit() == 0
        mark = "\x01servo end A{}\n"
        said = "one\nhalf a line\n"
        assert runner.output == said + mark.format(1) + mark.format(2) + said + mark.format(3) + said
        assert (
            runner.errors == "no end" + mark.format(1) + mark.format(2) + "no end" + mark.format(3) + "no end"
        )


@pytest.mark.parametrize(
    "body",
    [
        "os.dup2(os.open('mine', os.O_CREAT | os.O_WRONLY), 1)",
        "os.close(1); os.open('mine', os.O_CREAT | os.O_WRONLY)",
        "sys.stdout.close()",
        "sys.stdout = sys.stderr = None",
        "os.set_blocking(1, False); print('x' * 100_000)",
    ],
)
def test_marks_arrive_whatever_user_code_does_to_its_streams(tmp_path: Path, body: str) -> None:
    text = f"import os, sys\n@servo.asset\ndef meddles():\n    {body}\n"
    with started(tmp_path, text) as runner:
        for attempt in ("A1", "A2"):
            runner.send("run", **request(tmp_path, "meddles", mark=True, attempt_id=attempt))
            runner.wait_for("finished")
        assert runner.exit() == 0
        assert [line[1:] for line in runner.output.split("\n") if line[:1] == "\x01"] == [
            "servo end A1",
            "servo end A2",
        ]
        mine = tmp_path / "mine"
        assert not mine.exists() or "servo end" not in mine.read_text()


def test_a_full_pipe_that_does_not_block_loses_nothing(tmp_path: Path) -> None:
    text = """
import os, sys
@servo.asset
def talks():
    os.set_blocking(1, False)
    os.write(1, b"x" * 65_536)  # fills the pipe
    sys.stdout.reconfigure(line_buffering=False)
    print("the end")
"""
    reader, writer = os.pipe()
    with started(tmp_path, text, stdout=writer) as runner:
        os.close(writer)
        runner.send("run", **request(tmp_path, "talks", mark=True))
        with os.fdopen(reader, "rb") as output:
            assert output.read(65_536) == b"x" * 65_536
            runner.wait_for("finished")
            assert output.readline() + output.readline() == b"the end\n\x01servo end A1\n"
        assert runner.exit() == 0


def test_programs_that_user_code_starts_do_not_inherit_the_connection(tmp_path: Path) -> None:
    text = """
import os, subprocess, sys
PROGRAM = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))"
@servo.asset
def starts():
    done = subprocess.run([sys.executable, "-c", PROGRAM], close_fds=False, capture_output=True, text=True)
    return done.stdout
"""
    with started(tmp_path, text) as runner:
        assert runner.run("starts")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.starts") == "[0, 1, 2, 3]\n"


def test_forks_of_user_code_do_not_speak_to_the_supervisor(tmp_path: Path) -> None:
    text = """
import multiprocessing, os, sys
def square(number):
    return number * number
@servo.asset
def returns(ctx):
    ctx.log.info("before")
    if os.fork() == 0:
        ctx.log.info("from the child")
        ctx.progress(0.5)
        return "child"
    os.wait()
    return "parent"
@servo.asset
def raises(ctx):
    if os.fork() == 0:
        raise ValueError("child")
    return os.waitstatus_to_exitcode(os.wait()[1])
@servo.asset
def exits(ctx):
    if os.fork() == 0:
        sys.exit(3)
    return os.waitstatus_to_exitcode(os.wait()[1])
@servo.asset
def pools():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, [1, 2, 3])
@servo.multi_asset(outputs=[servo.AssetSpec("split.a"), servo.AssetSpec("split.b")])
def yields():
    yield "a"
    if os.fork() == 0:
        yield "child"
        return
    os.wait()
    yield "b"
"""
    with started(tmp_path, text) as runner:
        assert runner.run("returns")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.returns") == "parent"
        assert [log["message"] for log in runner.of_type("log")] == ["before"]
        assert "info: from the child" in runner.errors
        assert runner.run("raises")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.raises") == 1
        assert runner.run("exits")["outcome"] == "SUCCEEDED"
        assert runner.run("pools")["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.pools") == [1, 4, 9]
        assert runner.run("yields", assets=["split/a", "split/b"])["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "split.b") == "b"
        assert len(runner.of_type("finished")) == 5
        assert runner.exit() == 0


def test_closing_every_descriptor_never_writes_frames_into_files(tmp_path: Path) -> None:
    text = """
import os
@servo.asset
def closes(ctx):
    os.closerange(3, 4096)
    for number in range(200):
        os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY)
    ctx.log.info("where does this go?")
"""
    with started(tmp_path, text) as runner:
        runner.send("run", **request(tmp_path, "closes"))
        assert runner.receive() is None
        runner.process.wait(timeout=120)
        assert not any(file.read_bytes() for file in tmp_path.glob("file-*"))


def test_threads_log_whole_frames(tmp_path: Path) -> None:
    text = """
import threading
@servo.asset
def many(ctx):
    def work(name):
        for number in range(200):
            ctx.log.info("%s", name * 1000, extra={"number": number})
    threads = [threading.Thread(target=work, args=[name]) for name in "abcd"]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    with started(tmp_path, text) as runner:
        assert runner.run("many")["outcome"] == "SUCCEEDED"
        logs = runner.of_type("log")
        assert len(logs) == 800
        assert {log["message"] for log in logs} == {name * 1000 for name in "abcd"}


@pytest.mark.parametrize("body", ["os._exit(3)", "ctypes.string_at(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_dies_is_just_gone(tmp_path: Path, body: str) -> None:
    with started(tmp_path, f"import ctypes, os\n@servo.asset\ndef dies():\n    {body}\n") as runner:
        runner.send("run", **request(tmp_path, "dies"))
        assert runner.receive() is None
        assert runner.process.wait(timeout=120) != 0


def test_threads_that_modules_start_do_not_keep_the_process(tmp_path: Path) -> None:
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=[600]).start()\n"
    with started(tmp_path, text + FLIGHTS) as runner:
        assert runner.run("flights")["outcome"] == "SUCCEEDED"
        assert runner.exit() == 0


def test_a_manifest_that_is_too_large_is_refused(tmp_path: Path) -> None:
    text = "for number in range(17):\n    servo.external(f'raw.x{number}', description='d' * 1_000_000)\n"
    with started(tmp_path, text) as runner:
        runner.send("scan")
        (error,) = runner.wait_for("scanned")["errors"]
        assert "the manifest is too large to send" in error["message"]
        assert "python -m servo.scan" in error["message"]
        assert runner.exit() == 0


def test_what_is_said_of_an_output_is_left_out_before_the_outcome_is(tmp_path: Path) -> None:
    text = """
@servo.asset
def talks(ctx):
    ctx.metadata(**{f"n{number}": "x" * 60_000 for number in range(400)})
    return [1]
"""
    with started(tmp_path, text) as runner:
        finished = runner.run("talks")
        assert finished["outcome"] == "SUCCEEDED"
        assert finished["outputs"][0]["metadata"] == {}
        assert finished["outputs"][0]["state"] == "COMMITTED"
