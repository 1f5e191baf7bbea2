"""Reports of a running task to the supervisor, without its secrets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from servo.runner.frames import TooLargeError
from servo.runner.masking import Mask
from servo.runner.texts import MAX_MESSAGE, MAX_TRACEBACK, clean, cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_LOG: Final = 64_000
_MAX_FIELDS: Final = 100
_MAX_PROGRESS_MESSAGE: Final = 500


class Sender(Protocol):
    """The receiver of frames."""

    @property
    def is_open(self) -> bool:
        """Whether this process may send any."""

    def send(self, frame: dict[str, Any]) -> None:
        """Send one."""


class Reporter:
    """Sends what a task has to say.

    >>> class Shown:
    ...     is_open = True
    ...     def send(self, frame):
    ...         print(frame)
    >>> reporter = Reporter(Shown())
    >>> reporter.hide(["hunter2"])
    {'type': 'mask', 'values': ['aHVudGVyMg', 'aHVudGVyM', 'odW50ZXIy', 'h1bnRlcj', 'hunter2']}
    >>> reporter.log("info", "login with hunter2", {"rows": 3})
    {'type': 'log', 'level': 'info', 'message': 'login with ***', 'fields': {'rows': 3}}
    """

    def __init__(self, sender: Sender) -> None:
        """Take what sends frames."""
        self._sender = sender
        self.mask = Mask()

    def hide(self, secrets: Iterable[str]) -> None:
        """Replace these from now on, here and in what is printed."""
        self.mask = Mask(secrets)
        if self.mask.forms:
            self._sender.send({"type": "mask", "values": [clean(form) for form in self.mask.forms]})

    def progress(self, ppm: int, message: str) -> None:
        """Say how much is done."""
        if self._sender.is_open:
            shown = self.text(message, _MAX_PROGRESS_MESSAGE)
            self._sender.send({"type": "progress", "ppm": ppm, "message": shown})

    def log(self, level: str, message: str, fields: Mapping[str, object]) -> None:
        """Log a line. From a process that user code forked it goes to stderr, as a text."""
        shown = self.text(message, _MAX_LOG)
        if not self._sender.is_open:
            sys.stderr.write(f"{level}: {shown}\n")
            return
        masked = self.mask.json(dict(list(fields.items())[:_MAX_FIELDS]))
        self._sender.send({"type": "log", "level": level, "message": shown, "fields": masked})

    def finished(self, frame: dict[str, Any]) -> None:
        """Say how it ended. Nothing is said after that."""
        self.masked(frame)
        for part, empty in (("metadata", {}), ("schema", None), ("checks", [])):
            try:
                self._sender.send(frame)
            except TooLargeError:
                # The outcome must arrive: what makes it too long is left out.
                for output in frame["outputs"]:
                    output[part] = empty
            else:
                return
        self._sender.send(frame)

    def part(self, frame: dict[str, Any]) -> None:
        """Say how one partition of a call ended."""
        self.finished(frame)

    def masked(self, frame: dict[str, Any]) -> None:
        """Replace secrets in the parts of the last frame that are written by user code."""
        self.mask_error(frame)
        for output in frame["outputs"]:
            _mask_metadata(output, self.mask)
            for check in output["checks"]:
                self.mask_check(check)

    def mask_error(self, frame: dict[str, Any]) -> None:
        """Replace secrets in the error of a frame, if it has one."""
        error = frame.get("error")
        if error is not None:
            error["message"] = self.text(error["message"], MAX_MESSAGE)
            if error.get("traceback") is not None:
                error["traceback"] = self.text(error["traceback"], MAX_TRACEBACK)
            if error.get("suggested_action") is not None:
                error["suggested_action"] = self.text(error["suggested_action"], MAX_MESSAGE)
            error["details"] = self.mask.json(error.get("details", {}))

    def mask_check(self, check: dict[str, Any]) -> None:
        """Replace secrets in what became of a check."""
        _mask_metadata(check, self.mask)
        if check["message"] is not None:
            check["message"] = self.text(check["message"], MAX_MESSAGE)

    def text(self, text: str, limit: int) -> str:
        """Make a text fit to be sent. Secrets go first, since half of one is not found."""
        return cut(self.mask.text(clean(text)), limit)


def _mask_metadata(entry: dict[str, Any], mask: Mask) -> None:
    metadata = entry["metadata"]
    entry["metadata"] = {mask.text(clean(name)): mask.json_text(text) for name, text in metadata.items()}
