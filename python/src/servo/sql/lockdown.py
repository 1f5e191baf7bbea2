"""Keeps a program from changing files: from here on it may write in one directory, and nowhere else.

Linux does it (Landlock, since 5.13), and it cannot be undone. It holds for what is opened from now on, so
standard output may well be a file. Elsewhere nothing is done, and the caller relies on what else it does.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38

_WRITE_FILE: Final = 1 << 1
_REMOVE_DIRECTORY: Final = 1 << 4
# To remove and make whatever can be in a directory; for newer kernels, also to move it and truncate files.
_FIRST: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
_SINCE: Final = {2: 1 << 13, 3: 1 << 14}
_DEVICES: Final = "/dev"


def forbid_writes(but_in: str) -> bool:
    """Let this thread and those that it starts write in one directory only; False if that cannot be done.

    The directory itself can be removed, as can empty ones beside it.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - slow to import

    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    access = _FIRST | sum(bit for since, bit in _SINCE.items() if version >= since)
    attributes = struct.pack("Q", access)
    rules = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        beside = os.path.dirname(but_in)
        for directory, allowed in (
            (but_in, access),
            (beside, _REMOVE_DIRECTORY),
            (_DEVICES, _WRITE_FILE),
        ):
            place = os.open(directory, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = struct.pack("=Qi", allowed, place)
                if libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0) != 0:
                    return False
            finally:
                os.close(place)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            return False
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)
