"""The logger of a task: a logger of the standard library whose lines are sent to the supervisor."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from servo.runner.json_values import field_value

if TYPE_CHECKING:
    from collections.abc import Callable

    Log = Callable[[str, str, dict[str, object]], None]

# What every record has; the rest was given with `extra=`.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LEVELS: Final = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


def task_logger(log: Log) -> logging.Logger:
    """Make a logger that hands level, message and fields on. It is no part of any hierarchy of loggers.

    >>> logger = task_logger(lambda level, message, fields: print(level, message, fields))
    >>> logger.warning("%d flights without carrier", 3, extra={"airport": "JFK"})
    warning 3 flights without carrier {'airport': 'JFK'}
    """
    # Not `getLogger`, whose loggers live for ever: this one is of one task.
    logger = logging.Logger("servo.task", logging.DEBUG)  # noqa: LOG001 - as said
    logger.addHandler(_Handler(log))
    return logger


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # With the traceback, if there is one.
            message = self.format(record)
        except Exception as error:  # noqa: BLE001 - as the standard library: a wrong line stops nothing
            message = f"{record.msg!r} (cannot be formatted: {type(error).__name__}: {error})"
        given = {name: value for name, value in vars(record).items() if name not in _OWN}
        fields = {name: field_value(value) for name, value in given.items()}
        self._log(_level(record.levelno), message, fields)


def _level(number: int) -> str:
    return next((name for lowest, name in _LEVELS if number >= lowest), "debug")
