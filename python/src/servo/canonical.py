"""Canonical JSON: the one text of a value, for hashing, signing and comparing.

Keys sorted by code point, no whitespace, integers only. Any float is refused: money is integer micro-units,
ratios are parts per million, durations are milliseconds.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Final, NoReturn

from servo.errors import CanonicalError, ParseError, unexpected
from servo.sha256 import sha256_hex

MAX_DEPTH: Final = 128
"""How deep arrays and objects may nest."""

_MIN_INTEGER: Final = -(2**63)
_MAX_INTEGER: Final = 2**64 - 1
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = frozenset({str, int, bool, type(None), dict, list, tuple})
_HOLDERS: Final = frozenset({dict, list, tuple})
_MANY: Final = 100_000_000
_FINGERPRINT_PREFIX: Final = "v1:sha256:"


class _Float:
    """A float in a JSON text, kept as text so that the refusal can name its path."""

    def __init__(self, text: str) -> None:
        self.text = text


class _HugeInteger:
    """An integer in a JSON text that has more digits than any 64-bit integer."""

    def __init__(self, text: str) -> None:
        self.text = text


class _DuplicateKey:
    """An object in a JSON text that gives a key twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def canonical_json(value: object) -> str:
    """Give the canonical text of a value made of dicts, lists, strings, integers, booleans and None.

    >>> canonical_json({"b": [1, "é"], "a": None})
    '{"a":null,"b":[1,"é"]}'
    >>> canonical_json({"retry": {"factor": 1.5}})
    Traceback (most recent call last):
    servo.errors.CanonicalError: no canonical JSON: at $.retry.factor: 1.5 is a float, which canonical JSON \
refuses: use integer milliseconds, micro-units or parts per million
    """
    if not _is_plain(value):
        _check(value, "$", 0)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if not _is_unicode(text):
        _check(value, "$", 0)
    return text


def canonicalize(json_text: str) -> str:
    """Give the canonical text of a JSON document, in any order and whitespace but without duplicate keys.

    >>> canonicalize('{ "b": 1, "a": [ ] }')
    '{"a":[],"b":1}'
    """
    try:
        value = json.loads(
            json_text,
            parse_float=_Float,
            parse_int=_integer,
            parse_constant=_Float,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise CanonicalError("$", "syntax", f"not JSON at character {error.pos}: {error.msg}") from None
    except RecursionError:
        _refuse_depth("$")
    return canonical_json(value)


def fingerprint(value: object) -> str:
    """Give `v1:sha256:` and the SHA-256 of the canonical JSON of a value.

    >>> fingerprint({})
    'v1:sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return _FINGERPRINT_PREFIX + sha256_hex(canonical_json(value).encode())


def parse_fingerprint(text: str) -> str:
    """Check that a text is a fingerprint, and give it back.

    >>> parse_fingerprint("v1:sha256:xyz")
    Traceback (most recent call last):
    servo.errors.ParseError: invalid fingerprint "v1:sha256:xyz" at character 10: found 'x', \
expected a lower-case hexadecimal digit
    """
    if not text.startswith(_FINGERPRINT_PREFIX):
        raise ParseError("fingerprint", text, 0, f'a fingerprint starts with "{_FINGERPRINT_PREFIX}"')
    start = len(_FINGERPRINT_PREFIX)
    for at in range(start, len(text)):
        if text[at] not in "0123456789abcdef":
            raise ParseError("fingerprint", text, at, unexpected(text, at, "a lower-case hexadecimal digit"))
    digits = len(text) - start
    if digits != 64:
        raise ParseError("fingerprint", text, start + min(digits, 64), f"has {digits} digits, expected 64")
    return text


def _integer(text: str) -> int | _Float | _HugeInteger:
    # "-0" has a sign that an integer loses, and int() refuses or crawls over thousands of digits.
    if text == "-0":
        return _Float(text)
    return int(text) if len(text) <= 20 else _HugeInteger(text)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object] | _DuplicateKey:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    keys = [key for key, _ in pairs]
    return _DuplicateKey(min(key for key in members if keys.count(key) > 1))


def _is_plain(value: object) -> bool:
    """Say whether a value surely has a canonical text, if its strings are Unicode.

    This is many times faster than to find out what is wrong with a value. It goes from level to level, with
    all that is on a level at once.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        kinds = set(map(type, level))
        if not kinds <= _PLAIN or len(level) > _MANY:
            return False
        if int in kinds:
            integers = [each for each in level if type(each) is int]
            if min(integers) < _MIN_INTEGER or max(integers) > _MAX_INTEGER:
                return False
        holders = [each for each in level if type(each) in _HOLDERS]
        if not holders:
            return True
        dicts = [each for each in holders if type(each) is dict]
        if not set(map(type, chain.from_iterable(dicts))) <= {str}:
            return False
        lists = [each for each in holders if isinstance(each, list | tuple)]
        level = [*chain.from_iterable(map(dict.values, dicts)), *chain.from_iterable(lists)]
    return False


def _check(value: object, path: str, depth: int) -> None:
    """Refuse what has no canonical text. The path is built on the way down, the message only on refusal."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_unicode(value, path)
    elif isinstance(value, int):
        if not _MIN_INTEGER <= value <= _MAX_INTEGER:
            _refuse_integer(path, value)
    elif isinstance(value, list | tuple):
        _check_depth(path, depth)
        for index, element in enumerate(value):
            _check(element, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        _check_depth(path, depth)
        for key, member in value.items():
            if not isinstance(key, str):
                problem = f"{type(key).__name__} cannot be an object key: use a string"
                raise CanonicalError(path, "key", problem)
            _check_unicode(key, path)
            _check(member, path + _step(key), depth + 1)
    else:
        _refuse(value, path)


def _is_unicode(text: str) -> bool:
    # Whether a text is ASCII is known to it; only other texts are looked at.
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _check_depth(path: str, depth: int) -> None:
    if depth == MAX_DEPTH:
        _refuse_depth(path)


def _check_unicode(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = "a string has half of a surrogate pair, which UTF-8 cannot hold"
        raise CanonicalError(path, "unicode", problem) from None


def _refuse_depth(path: str) -> NoReturn:
    raise CanonicalError(path, "depth", f"nested deeper than {MAX_DEPTH} levels: flatten the value")


def _refuse_integer(path: str, shown: object) -> NoReturn:
    limits = f"not between {_MIN_INTEGER} and {_MAX_INTEGER}"
    raise CanonicalError(path, "integer_range", f"integer {shown} is {limits}: send it as a string")


def _refuse(value: object, path: str) -> NoReturn:
    if isinstance(value, _HugeInteger):
        _refuse_integer(path, value.text)
    if isinstance(value, _DuplicateKey):
        problem = f"key {json.dumps(value.key)} is given twice: keep one"
        raise CanonicalError(path, "duplicate_key", problem)
    if isinstance(value, float | _Float):
        shown = value.text if isinstance(value, _Float) else repr(value)
        raise CanonicalError(
            path,
            "float",
            f"{shown} is a float, which canonical JSON refuses: "
            "use integer milliseconds, micro-units or parts per million",
        )
    raise CanonicalError(path, "type", f"{type(value).__name__} is not a JSON value")


def _step(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
