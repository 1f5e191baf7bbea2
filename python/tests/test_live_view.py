"""The live view of `servo materialize`, as somebody in front of a terminal sees and uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, Self

import pytest

from scanning import SOURCE
from serving import NAMES, PROGRAM

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CTRL_C, CTRL_R = b"\x03", b"\x12"
PATIENCE = 60.0

PATIENT = """
import pathlib
import servo

@servo.asset(namespace="t", retry=servo.Retry(max_attempts=2, delay="1h"))
def patient() -> int:
    if not pathlib.Path("mended").exists():
        raise ValueError("it is not mended")
    return 1
"""


class Terminal:
    """A command with a terminal of its own, until the end of the block."""

    def __init__(self, project: Path, *command: str) -> None:
        """Start it."""
        self._screen, inside = pty.openpty()
        termios.tcsetwinsize(inside, (24, 80))
        self.before = termios.tcgetattr(inside)
        inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [PROGRAM, *command],
            cwd=project,
            env={**inherited, "SERVO_PYTHON": sys.executable, "PYTHONPATH": str(SOURCE), "TERM": "xterm"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            # The terminal is that of its session, so that what is typed becomes signals.
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(inside, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, no locks
        )
        self._inside = inside
        self.shown = ""

    def __enter__(self) -> Self:
        """Begin to look at it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._inside)
        os.close(self._screen)

    def press(self, key: bytes) -> None:
        """Type a key."""
        os.write(self._screen, key)

    def wait_for(self, text: str) -> None:
        """Look at the screen until it has shown this."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            if time.monotonic() > deadline or (self.process.poll() is not None and not self._look(0)):
                pytest.fail(f"{text!r} is not in\n{self.shown}")
            self._look(0.1)

    def ended(self) -> int:
        """Wait until the command has ended, and give its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                pytest.fail(f"it does not end:\n{self.shown}")
            self._look(0.1)
        while self._look(0):
            pass
        return self.process.returncode

    def settings(self) -> list[object]:
        """Give how the terminal is set: what is echoed, and whether lines or keys are read."""
        return list(termios.tcgetattr(self._inside))

    def _look(self, seconds: float) -> bool:
        with contextlib.suppress(OSError):
            if select.select([self._screen], [], [], seconds)[0]:
                text = os.read(self._screen, 65536).decode("utf-8", "replace")
                self.shown += re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
                return True
        return False


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a project with an asset that fails until it is mended, and waits an hour in between."""
    (tmp_path / "servo.toml").write_text('[project]\nname = "work"\nmodules = ["work"]\n', encoding="utf-8")
    (tmp_path / "work.py").write_text(PATIENT, encoding="utf-8")
    return tmp_path


def test_ctrl_r_ends_the_waiting_for_a_retry(project: Path) -> None:
    with Terminal(project, "materialize", "t.patient") as terminal:
        terminal.wait_for("attempt 1 failed: USER_CODE_EXCEPTION ValueError: it is not mended")
        terminal.wait_for("now with Ctrl-R")
        assert terminal.settings() != terminal.before, "keys are read one by one"
        (project / "mended").touch()
        # Another key does nothing.
        terminal.press(b"x")
        terminal.press(CTRL_R)
        assert terminal.ended() == 0, terminal.shown
        assert "SUCCEEDED" in terminal.shown
        assert "^R" not in terminal.shown, "what is typed is not shown"
        assert terminal.settings() == terminal.before, "the shell finds its terminal as it was"


def test_ctrl_c_while_waiting_for_a_retry_cancels_the_run_and_leaves_the_terminal_as_it_was(
    project: Path,
) -> None:
    with Terminal(project, "materialize", "t.patient") as terminal:
        terminal.wait_for("now with Ctrl-R")
        terminal.press(CTRL_C)
        assert terminal.ended() == 1, terminal.shown
        assert "cancelling; press Ctrl-C again to leave at once" in terminal.shown
        assert "CANCELLED" in terminal.shown
        assert terminal.settings() == terminal.before
