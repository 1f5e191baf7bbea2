"""The conversation with the supervisor: one request at a time, on the main thread."""

from __future__ import annotations

import os
import sys

from servo.runner.frames import Channel, ClosedError, ProtocolError, TooLargeError
from servo.runner.marks import Marks

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from servo.runner.fork_server import ForkServer
    from servo.runner.loaded import Loaded
    from servo.runner.surroundings import Surroundings

PROTOCOL = 1
EXIT_OK = 0
EXIT_PROTOCOL = 2
_MANY_OBJECTS = 100_000
_MILLISECONDS = 2
"""How long a request may take to follow on another."""


class Loop:
    """Answers the supervisor until it leaves."""

    def __init__(self, channel: Channel) -> None:
        """Take the connection to it."""
        self._channel = channel
        self._loaded: Loaded | None = None
        self._directory: str | None = None
        self._is_prepared = False
        self._marks = Marks()
        self._surroundings: Surroundings | None = None
        self._server: ForkServer | None = None

    def run(self) -> int:
        """Greet, answer requests, and give the exit code."""
        try:
            self._channel.send_text("hello", hello())
            while (frame := self._next()) is not None and frame["type"] != "exit":
                self._answer(frame)
        except ClosedError:
            # Nobody is there to be told anything.
            return EXIT_OK
        except ProtocolError as error:
            sys.stderr.write(f"error: {error}: is the supervisor of another version?\n")
            return EXIT_PROTOCOL
        finally:
            if self._loaded is not None:
                self._loaded.resources.tear_down()
        return EXIT_OK

    def _next(self) -> dict[str, Any] | None:
        """Wait for a request. If there is time, what tasks need is imported before the first one comes."""
        if self._loaded is not None and not self._is_prepared and not self._channel.comes(_MILLISECONDS):
            self._is_prepared = True
            _prepare()
        return self._channel.receive()

    def _answer(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "load":
            self._load(str(frame.get("project", ".")))
        elif kind == "scan":
            self._scan()
        elif kind == "run":
            self._run(frame)
        elif kind == "evaluate":
            self._evaluate(frame)

    def _load(self, directory: str) -> None:
        directory = os.path.abspath(directory)
        if self._loaded is None:
            self._loaded = _load(directory)
            self._directory = directory
        elif directory != self._directory:
            from servo.failures import config_failure  # noqa: PLC0415 - only when needed

            problem = f"this process holds the project at {self._directory}: start another for {directory}"
            self._channel.send({"type": "loaded", "errors": [config_failure(problem)]})
            return
        self._channel.send({"type": "loaded", "errors": self._loaded.failures})

    def _scan(self) -> None:
        if self._loaded is None:
            from servo.failures import config_failure  # noqa: PLC0415 - only when needed

            failures = [config_failure("no project is loaded: load one first")]
            self._channel.send({"type": "scanned", "errors": failures})
            return
        digest, manifest, failures = self._loaded.described()
        if failures:
            self._channel.send({"type": "scanned", "errors": failures})
            return
        # The manifest is a text of JSON already.
        text = f'{{"type":"scanned","digest":"{digest}","manifest":{manifest}}}'
        try:
            self._channel.send_text("scanned", text)
        except TooLargeError as error:
            from servo.failures import config_failure  # noqa: PLC0415 - only when needed

            problem = f"the manifest is too large to send, {error.size} bytes: use python -m servo.scan"
            self._channel.send({"type": "scanned", "errors": [config_failure(problem)]})

    def _run(self, frame: dict[str, Any]) -> None:
        if not self._is_prepared and self._loaded is not None:
            self._is_prepared = True
            _prepare()
        from servo.runner.attempts import attempt  # noqa: PLC0415 - imported by now

        if "request" in frame:
            frame = {**frame, **_read(str(frame["request"]))}
        if self._surroundings is None and self._loaded is not None:
            self._begin(self._loaded)
        worn = attempt(frame, self._loaded, self._channel, self._server)
        self._after(worn, str(frame.get("attempt_id", "")), mark=bool(frame.get("mark")))

    def _evaluate(self, frame: dict[str, Any]) -> None:
        loaded = self._loaded
        if loaded is None:
            return
        if not self._is_prepared:
            self._is_prepared = True
            _prepare()
        from servo.runner.attempts import reset_termination  # noqa: PLC0415 - imported by now
        from servo.runner.evaluations import evaluate  # noqa: PLC0415 - only where there are any

        if self._surroundings is None:
            self._begin(loaded)
        reset_termination()
        os.chdir(loaded.project.root)
        evaluate(frame, loaded, self._channel)
        self._after(None, str(frame.get("evaluation_id", "")), mark=bool(frame.get("mark")))

    def _after(self, worn: str | None, ended: str, *, mark: bool) -> None:
        """Put back what user code has changed, and say that it has ended."""
        self._marks.restore()
        if self._surroundings is not None:
            worn = self._surroundings.restore() or worn
        if worn is not None:
            self._channel.send({"type": "worn", "reason": worn})
        if mark:
            self._marks.write(ended)

    def _begin(self, loaded: Loaded) -> None:
        """Get ready for the first task, before it can have changed anything."""
        from servo.runner.surroundings import Surroundings  # noqa: PLC0415 - imported by now

        self._surroundings = Surroundings()
        if loaded.isolates:
            from servo.runner.attempts import attempt  # noqa: PLC0415 - imported by now
            from servo.runner.fork_server import ForkServer  # noqa: PLC0415 - only where tasks are isolated

            self._server = ForkServer(lambda frame, channel: attempt(frame, loaded, channel))


def _read(file: str) -> dict[str, Any]:
    """Read a request that is too long for a frame."""
    from servo.runner.frames import decoded  # noqa: PLC0415 - rarely needed

    with open(file, "rb") as opened:
        return decoded(b'{"type":"run",' + opened.read().lstrip()[1:])


def hello() -> str:
    """Write the first frame, by hand, since it is waited for.

    >>> hello()[:29]
    '{"type":"hello","protocol":1,'
    """
    from servo import __version__  # noqa: PLC0415 - imported by now

    version = ".".join(map(str, sys.version_info[:3]))
    return (
        f'{{"type":"hello","protocol":{PROTOCOL},"pid":{os.getpid()},'
        f'"python":"{version}","sdk":"{__version__}"}}'
    )


def _load(directory: str) -> Loaded:
    """Import a project. Little of what is made then is garbage, so it is looked for less often."""
    import gc  # noqa: PLC0415 - not needed before

    before = gc.get_threshold()
    gc.set_threshold(_MANY_OBJECTS, *before[1:])
    try:
        from servo.runner.loaded import Loaded  # noqa: PLC0415 - all of Servo, for which hello does not wait

        return Loaded.from_directory(directory)
    finally:
        # Unless the project has an opinion of its own.
        if gc.get_threshold()[0] == _MANY_OBJECTS:
            gc.set_threshold(*before)


def _prepare() -> None:
    """Get ready for tasks."""
    import gc  # noqa: PLC0415 - not needed before

    import servo.runner.attempts  # noqa: PLC0415 - so that the first task need not
    import servo.runner.surroundings  # noqa: F401, PLC0415 - as above
    from servo.storage import remember_libraries  # noqa: PLC0415 - as above

    remember_libraries()
    # Modules live as long as the process: not looking at them again saves time, and memory after a fork.
    gc.freeze()
