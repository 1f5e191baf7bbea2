"""Resource usage of a task."""

from __future__ import annotations

import os
import resource
import sys
from time import process_time
from typing import Final

_STATUS: Final = "/proc/self/status"
_RESET: Final = "/proc/self/clear_refs"


class Usage:
    """Counts from when it is made.

    >>> sorted(Usage().taken(bytes_read=1, bytes_written=2))
    ['bytes_read', 'bytes_written', 'cpu_ms', 'max_rss_bytes']
    """

    def __init__(self) -> None:
        """Start to count."""
        self._cpu = _cpu_seconds()
        # The process is older than the task: without this, the most that any task used would count.
        self._can_reset = _reset_peak()

    def taken(self, *, bytes_read: int, bytes_written: int) -> dict[str, int]:
        """Give what was used, with what is known of data."""
        return {
            "cpu_ms": round((_cpu_seconds() - self._cpu) * 1000),
            "max_rss_bytes": (_peak() if self._can_reset else None)
            or peak_bytes(resource.getrusage(resource.RUSAGE_SELF)),
            "bytes_read": bytes_read,
            "bytes_written": bytes_written,
        }


def _cpu_seconds() -> float:
    # Asking for the usage of this process would look at its memory too: that was a seventh of a small task.
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def peak_bytes(usage: resource.struct_rusage) -> int:
    """Give the most memory that a process has used; systems count it in different units.

    >>> peak_bytes(resource.getrusage(resource.RUSAGE_SELF)) > 1_000_000
    True
    """
    return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024


def _reset_peak() -> bool:
    """Make Linux count the most memory anew; elsewhere it cannot be done."""
    try:
        descriptor = os.open(_RESET, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(descriptor, b"5")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _peak() -> int | None:
    try:
        descriptor = os.open(_STATUS, os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    _, found, rest = text.partition(b"VmHWM:")
    return int(rest.split(None, 1)[0]) * 1024 if found else None
