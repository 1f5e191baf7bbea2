"""Ids as text: run ids, ULIDs, asset ids, names of tenants and workspaces, and ids on queues."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final, Literal

from servo.errors import ParseError, unexpected

if TYPE_CHECKING:
    from servo.keys import TaskKey

_RUN_PREFIX: Final = "run_"
_BASE32: Final = "abcdefghijklmnopqrstuvwxyz234567"
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGITS: Final = 26
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MAX_NAME: Final = 63
_UUID_LENGTH: Final = 36
_UUID_HYPHENS: Final = (8, 13, 18, 23)


def parse_name(what: str, text: str) -> str:
    """Check the name of a tenant or workspace, and give it back.

    >>> parse_name("tenant", "acme-2")
    'acme-2'
    """
    match = _NAME.match(text)
    if match is None:
        raise ParseError(what, text, 0, unexpected(text, 0, "a letter a-z or a digit"))
    end = match.end()
    if end < len(text):
        raise ParseError(what, text, end, unexpected(text, end, 'a letter a-z, a digit, "_" or "-"'))
    if end > _MAX_NAME:
        problem = f"has {end} characters, at most {_MAX_NAME} are allowed"
        raise ParseError(what, text, _MAX_NAME, problem)
    return text


def run_id(secret: bytes, tenant: str, workspace: str, run_key: str) -> str:
    """Derive the id of a run from what it is for: the same run key always gives the same id.

    >>> run_id(b"secret", "acme", "prod", "daily") == run_id(b"secret", "acme", "prod", "daily")
    True
    """
    message = f"{parse_name('tenant', tenant)}:{parse_name('workspace', workspace)}:{run_key}"
    digest = hmac.new(secret, message.encode(), hashlib.sha256).digest()
    return _RUN_PREFIX + _base32(digest[:16])


def parse_run_id(text: str) -> str:
    """Check that a text is a run id, and give it back.

    >>> parse_run_id("run_" + "a" * 26)
    'run_aaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    start = len(_RUN_PREFIX)
    if not text.startswith(_RUN_PREFIX):
        raise ParseError("run id", text, 0, 'a run id starts with "run_"')
    digits = len(text) - start
    for at in range(start, min(len(text), start + _DIGITS)):
        if text[at] not in _BASE32:
            raise ParseError("run id", text, at, unexpected(text, at, "a letter a-z or a digit 2-7"))
    if digits >= _DIGITS and _BASE32.index(text[start + _DIGITS - 1]) & 0b11:
        # The last digit has two bits that are not part of the id; set, they would give a run a second name.
        at = start + _DIGITS - 1
        raise ParseError("run id", text, at, unexpected(text, at, "one of a, e, i, m, q, u, y, 4"))
    if digits != _DIGITS:
        problem = f'has {digits} characters after "run_", expected {_DIGITS}'
        raise ParseError("run id", text, start + min(digits, _DIGITS), problem)
    return text


def parse_ulid(what: str, text: str) -> str:
    """Check that a text is a ULID in its one form (26 upper-case characters), and give it back.

    >>> parse_ulid("event id", "01JHMR6K5V0000000000000007")
    '01JHMR6K5V0000000000000007'
    """
    for at, character in enumerate(text[:_DIGITS]):
        if character in _CROCKFORD:
            if at == 0 and character > "7":
                problem = "the first character is at most 7, or it overflows 128 bits"
                raise ParseError(what, text, at, problem)
        elif "a" <= character <= "z":
            raise ParseError(what, text, at, "letters are upper case")
        else:
            expected = "a digit or an upper-case letter other than I, L, O, U"
            raise ParseError(what, text, at, unexpected(text, at, expected))
    if len(text) != _DIGITS:
        problem = f"has {len(text)} characters, expected {_DIGITS}"
        raise ParseError(what, text, min(len(text), _DIGITS), problem)
    return text


def parse_asset_id(text: str) -> str:
    """Check that a text is a UUID of version 7 in lower case with hyphens, and give it back.

    >>> parse_asset_id("01946983-4cbb-7000-8000-00000000002a")
    '01946983-4cbb-7000-8000-00000000002a'
    """
    for at in range(_UUID_LENGTH):
        character = text[at : at + 1]
        if at in _UUID_HYPHENS:
            if character != "-":
                raise ParseError("asset id", text, at, unexpected(text, at, '"-"'))
        elif not character or character not in "0123456789abcdef":
            expected = "a lower-case hexadecimal digit"
            raise ParseError("asset id", text, at, unexpected(text, at, expected))
        elif at == 14 and character != "7":
            raise ParseError("asset id", text, at, f"is a UUID of version {character}, expected version 7")
        elif at == 19 and character not in "89ab":
            expected = "8, 9, a or b (the RFC 9562 variant)"
            raise ParseError("asset id", text, at, unexpected(text, at, expected))
    if len(text) > _UUID_LENGTH:
        problem = f"has {len(text)} characters, expected {_UUID_LENGTH}"
        raise ParseError("asset id", text, _UUID_LENGTH, problem)
    return text


def dispatch_id(run: str, task: TaskKey, attempt: int) -> str:
    """Give the internal id of the dispatch of one attempt.

    >>> from servo.keys import TaskKey
    >>> dispatch_id("run_" + "a" * 26, TaskKey.parse("raw/flights:materialize"), 1)
    'dispatch:run_aaaaaaaaaaaaaaaaaaaaaaaaaa:raw/flights:materialize:1'
    """
    return f"dispatch:{parse_run_id(run)}:{task.canonical}:{attempt}"


def timer_id(kind: str, run: str | None, task: TaskKey | None, attempt: int, fire_at_ms: int) -> str:
    """Give the internal id of a timer; its seconds are rounded up, so that it never fires early.

    >>> timer_id("schedule", None, None, 0, 1_001)
    'timer:schedule:-:-:0:2'
    """
    shown_run = "-" if run is None else parse_run_id(run)
    shown_task = "-" if task is None else task.canonical
    return f"timer:{kind}:{shown_run}:{shown_task}:{attempt}:{-(-fire_at_ms // 1_000)}"


def cloud_task_id(prefix: Literal["d", "t"], internal: str) -> str:
    """Give the name under which an internal id goes on a queue that forbids colons and long names.

    >>> cloud_task_id("t", "timer:schedule:-:-:0:2")
    't_znufifs2zsfuqj7cscqrfz5asf'
    """
    return f"{prefix}_{_base32(hashlib.sha256(internal.encode()).digest())[:_DIGITS]}"


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().lower().rstrip("=")
