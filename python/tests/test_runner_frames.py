"""Any bytes over the socket give frames or a protocol error, the same however they arrive.

The inputs are those that the other end of the socket is held to, `fuzz/corpus/runner_frames`.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servo.runner.errors import TaskError
from servo.runner.frames import Channel, ProtocolError
from servo.runner.requests import RunRequest

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "runner_frames"
INPUTS = sorted(CORPUS.iterdir())
WHOLE = 1 << 30


def received(data: bytes, size: int) -> list[Any]:
    """Give the frames of bytes that arrive in pieces of a size, and the error that ended them, if any."""
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb", buffering=0) as pipe:
            for start in range(0, len(data), size):
                try:
                    pipe.write(data[start : start + size])
                except BrokenPipeError:
                    # Whoever reads has seen enough.
                    return

    thread = threading.Thread(target=write)
    channel = Channel(reader)
    thread.start()
    try:
        return list(frames(channel))
    finally:
        channel.close()
        thread.join()


def frames(channel: Channel) -> Iterator[Any]:
    """Receive until there is nothing more to understand."""
    try:
        while (frame := channel.receive()) is not None:
            assert isinstance(frame["type"], str)
            yield frame
    except ProtocolError as error:
        yield str(error)


def changes(data: bytes) -> Iterator[bytes]:
    """Damage bytes: cut off, flipped, repeated."""
    step = max(1, len(data) // 16)
    for at in range(0, len(data), step):
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        yield data[:at] + data[at : at + 7] + data[at:]


def test_there_are_inputs() -> None:
    assert len(INPUTS) >= 10


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_frames_are_the_same_however_they_arrive(path: Path) -> None:
    data = path.read_bytes()
    whole = received(data, WHOLE)
    # NaN is no JSON, but Python reads it, and it equals nothing.
    assert repr(received(data, 3)) == repr(whole)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_damage_is_an_error_of_the_protocol_or_a_task_that_is_refused(path: Path) -> None:
    for changed in changes(path.read_bytes()):
        for frame in received(changed, WHOLE):
            if isinstance(frame, dict) and frame["type"] == "run":
                with contextlib.suppress(TaskError):
                    RunRequest(frame)
