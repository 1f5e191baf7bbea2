"""The surroundings of a task: what a process has one of, and the next task must find as the first one did.

What can be put back is put back after each task. What cannot be is told, and the supervisor replaces the
process.
"""

from __future__ import annotations

import _locale
import os
import sys
import threading
import time
from _signal import (  # type: ignore[import-not-found]
    ITIMER_REAL,
    SIGALRM,
    SIGCHLD,
    SIGHUP,
    SIGINT,
    SIGPIPE,
    SIGUSR1,
    SIGUSR2,
    getitimer,
    getsignal,
    setitimer,
    signal,
)
from contextlib import suppress
from typing import Any, Final

_SIGNALS: Final = (SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGUSR1, SIGUSR2)
_MANY_MODULES: Final = 2_000
_CHECK: Final = "servo-check"


class Surroundings:
    """The surroundings as they are when this is made.

    >>> surroundings = Surroundings()
    >>> os.environ["LEFT"] = "behind"
    >>> surroundings.restore()
    >>> "LEFT" in os.environ
    False
    """

    def __init__(self) -> None:
        """Remember them."""
        self._environment = dict(os.environ)
        self._variables = _variables()
        self._streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
        self._hooks = {name: getattr(sys, name) for name in ("excepthook", "displayhook", "unraisablehook")}
        self._path = list(sys.path)
        self._argv = list(sys.argv)
        self._recursion = sys.getrecursionlimit()
        self._umask = _umask()
        self._locale = _locale.setlocale(_locale.LC_ALL, None)
        self._handlers = {number: getsignal(number) for number in _SIGNALS}
        self._modules = len(sys.modules)
        self._threads = set(threading.enumerate())
        self._warnings = _warning_filters()
        self._logging = _logging()
        self._of_loggers = _handlers_of_loggers()
        self._patience = _socket_timeout()

    def restore(self) -> str | None:
        """Put back what was changed; give what cannot be put back, in words."""
        # Before all else, which must not raise because a task has made errors of warnings.
        self._restore_warnings()
        if _variables() != self._variables:
            is_elsewhere = os.environ.get("TZ") != self._environment.get("TZ")
            os.environ.clear()
            os.environ.update(self._environment)
            if is_elsewhere:
                time.tzset()
        self._restore_interpreter()
        if _umask() != self._umask:
            os.umask(self._umask)
        if _locale.setlocale(_locale.LC_ALL, None) != self._locale:
            with suppress(ValueError, OSError):
                _locale.setlocale(_locale.LC_ALL, self._locale)
        # An alarm that nobody waits for any more would end the next task.
        if getitimer(ITIMER_REAL) != (0.0, 0.0):
            setitimer(ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            if getsignal(number) is not handler and handler is not None:
                signal(number, handler)
        self._restore_logging()
        self._restore_loggers()
        if _socket_timeout() != self._patience:
            sys.modules["_socket"].setdefaulttimeout(self._patience)
        return self._left()

    def _restore_interpreter(self) -> None:
        for name, value in (*self._streams.items(), *self._hooks.items()):
            if getattr(sys, name, None) is not value:
                setattr(sys, name, value)
        if sys.path != self._path:
            sys.path[:] = self._path
        if sys.argv != self._argv:
            sys.argv[:] = self._argv
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)

    def _restore_warnings(self) -> None:
        filters = _warning_filters()
        if filters is not None and filters != self._warnings:
            warnings: Any = sys.modules["warnings"]
            # Its functions take note that filters have changed: one of them is called between.
            warnings.filters[:] = self._warnings or []
            warnings.simplefilter("default")
            warnings.filters[:] = self._warnings or []

    def _restore_logging(self) -> None:
        found = _logging()
        if found is None or found == self._logging:
            return
        handlers, level, disabled = self._logging or ([], 30, 0)
        logging: Any = sys.modules["logging"]
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        logging.disable(disabled)

    def _restore_loggers(self) -> None:
        """Remove handlers that were added, or every line of the next task would be written twice."""
        found = _handlers_of_loggers()
        if found == self._of_loggers:
            return
        logging: Any = sys.modules["logging"]
        for name in {*found, *self._of_loggers}:
            logging.getLogger(name).handlers[:] = self._of_loggers.get(name, [])

    def _left(self) -> str | None:
        for thread in threading.enumerate():
            if thread not in self._threads and (not thread.daemon or thread.name == _CHECK):
                return f"the thread {thread.name} is still running"
        if _has_children():
            return "a process that it started is still running"
        for name, stream in self._streams.items():
            if getattr(stream, "closed", False):
                return f"sys.{name} is closed"
        if len(sys.modules) - self._modules > _MANY_MODULES:
            return f"it has made {len(sys.modules) - self._modules} modules"
        return None


def _variables() -> object:
    """Give the environment in a form that is quickly compared."""
    found = getattr(os.environ, "_data", None)
    return dict(os.environ) if found is None else dict(found)


def _has_children() -> bool:
    """Say whether a process is running that was started here, and that no pool of `multiprocessing` keeps."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):
        return False
    multiprocessing: Any = sys.modules.get("multiprocessing")
    return ended is None and not (multiprocessing is not None and multiprocessing.active_children())


def _umask() -> int:
    """Read it, which cannot be done without setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


def _warning_filters() -> list[Any] | None:
    warnings = sys.modules.get("warnings")
    return None if warnings is None else list(warnings.filters)


def _logging() -> tuple[list[Any], int, int] | None:
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return None
    return list(logging.root.handlers), logging.root.level, logging.root.manager.disable


def _handlers_of_loggers() -> dict[str, list[Any]]:
    """Give the handlers of loggers that have a name, without those that do nothing: libraries add them."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return {}
    found = {}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        handlers = getattr(logger, "handlers", None)
        if handlers and any(type(each) is not logging.NullHandler for each in handlers):
            found[name] = list(handlers)
    return found


def _socket_timeout() -> float | None:
    socket: Any = sys.modules.get("_socket")
    return None if socket is None else socket.getdefaulttimeout()
