"""Marks in what user code prints: the lines that come before one belong to the attempt that it names."""

from __future__ import annotations

import os

from servo.process import flush
from servo.runner.frames import identity, moved


class Marks:
    """Writes to stdout and stderr as they were at the start, whatever user code has done to them since."""

    def __init__(self) -> None:
        """Keep both, where user code does not find them."""
        kept = [moved(os.dup(number)) for number in (1, 2)]
        self._streams = [(descriptor, identity(descriptor)) for descriptor in kept]

    def restore(self) -> None:
        """Put both back where user code has closed them, or put something else there."""
        for number, (descriptor, known) in enumerate(self._streams, start=1):
            if identity(number) != known and identity(descriptor) == known:
                os.dup2(descriptor, number)

    def write(self, attempt_id: str) -> None:
        """Say that an attempt has ended. What it has printed is before it, also a line without an end."""
        flush()
        data = f"\x01servo end {attempt_id}\n".encode()
        for descriptor, known in self._streams:
            # A descriptor that user code has closed may be one of its files by now.
            if identity(descriptor) == known:
                _write(descriptor, data)


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                # A program that had the same stream has left it so.
                os.set_blocking(descriptor, True)
    except OSError:
        # Nobody reads it.
        return
