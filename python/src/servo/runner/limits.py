"""Limits of `compute=`, as far as the system can hold a process to them."""

from __future__ import annotations

import math
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST_MEMORY: Final = 16 * 1024**2
"""Bytes that a task may allocate in any case: the interpreter needs some to say that there is no more."""


@contextmanager
def within(compute: dict[str, Any] | None) -> Iterator[None]:
    """Hold this process to a number of bytes and of cores for as long as the block lasts.

    Memory is what a process has of its own (`RLIMIT_DATA`): who asks for more gets a MemoryError, or whatever
    a library makes of it. Cores are those that new threads may run on. Elsewhere than on Linux nothing is
    done.
    """
    memory = (compute or {}).get("memory_bytes")
    millicores = (compute or {}).get("cpu_millicores")
    if memory is None and millicores is None:
        yield
        return
    import resource  # noqa: PLC0415 - only for tasks that have limits

    before = resource.getrlimit(resource.RLIMIT_DATA)
    cores = _cores()
    try:
        # What cannot be set is not held to.
        with suppress(OSError, ValueError):
            if memory is not None:
                wanted = max(int(memory), _own_memory() + _LEAST_MEMORY)
                hard = before[1]
                soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        with suppress(OSError, ValueError):
            if millicores is not None and cores:
                os.sched_setaffinity(0, cores[: max(1, math.ceil(int(millicores) / 1000))])
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, before)
        with suppress(OSError, ValueError):
            if cores:
                os.sched_setaffinity(0, cores)


def _cores() -> list[int]:
    """Give the cores that this process may run on, where that is known."""
    find = getattr(os, "sched_getaffinity", None)
    return sorted(find(0)) if find is not None else []


def _own_memory() -> int:
    """Give the bytes that count against the limit already."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0
