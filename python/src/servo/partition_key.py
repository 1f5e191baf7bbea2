"""Partition keys: a value for each dimension, with one canonical text."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from servo.civil import Refused, is_digit, read_date, read_time, write_time
from servo.errors import ParseError, unexpected

if TYPE_CHECKING:
    from collections.abc import Mapping

PartitionValue = str | int | bool | dt.date | dt.datetime | None
"""Types of values of a dimension. A `datetime` must know its zone. Floats are out: they have no one text."""

_WHAT: Final = "partition key"
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_DIM: Final = re.compile(r"[a-z][a-z0-9_]*")
_DIM_CHARACTERS: Final = 'a letter a-z, a digit, "_", or "=" after the dimension'
_NO_DIMENSIONS: Final = "a partition key has at least one dimension"
_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**63 - 1


@dataclass(frozen=True, order=True, slots=True)
class PartitionKey:
    """Names a partition; equal and ordered as the canonical text. Build it with `of` or `parse`.

    >>> key = PartitionKey.parse("date=d:2025-01-15,region=s:dXMtZWFzdA")
    >>> key.dims()["region"]
    'us-east'
    >>> str(key)
    'date=2025-01-15,region=us-east'
    """

    canonical: str

    def __post_init__(self) -> None:
        """Check the text: a key that exists is valid."""
        try:
            scan(self.canonical)
        except Refused as refused:
            raise ParseError(_WHAT, self.canonical, refused.at, refused.problem) from None

    @classmethod
    def of(cls, dims: Mapping[str, PartitionValue]) -> PartitionKey:
        """Build a key from dimensions and values.

        >>> PartitionKey.of({"n": 7, "date": dt.date(2025, 1, 15)}).canonical
        'date=d:2025-01-15,n=i:7'
        """
        for dim in dims:
            match = _DIM.match(dim)
            if match is None or match.end() != len(dim):
                at = match.end() if match else 0
                raise ParseError(_WHAT, dim, at, unexpected(dim, at, "a dimension [a-z][a-z0-9_]*"))
        return cls(",".join(f"{dim}={_write(dims[dim])}" for dim in sorted(dims)))

    @classmethod
    def parse(cls, text: str) -> PartitionKey:
        """Read the canonical text, and only that.

        >>> PartitionKey.parse("date=d:2025-13-01")
        Traceback (most recent call last):
        servo.errors.ParseError: invalid partition key "date=d:2025-13-01" at character 7: month 13 is not \
between 1 and 12
        """
        return cls(text)

    def dims(self) -> dict[str, PartitionValue]:
        """Give dimensions and values, in order of dimension.

        >>> PartitionKey.parse("a=b:true,b=n:").dims()
        {'a': True, 'b': None}
        """
        return scan(self.canonical)

    def __str__(self) -> str:
        """Give the short form for people; a lone value stands by itself."""
        dims = self.dims()
        if len(dims) == 1:
            (value,) = dims.values()
            return _lone(value)
        return ",".join(f"{dim}={_short(value)}" for dim, value in dims.items())


def scan(text: str) -> dict[str, PartitionValue]:
    """Read a canonical text; raises `Refused` with the position in it.

    >>> scan("n=i:7")
    {'n': 7}
    """
    if not text:
        raise Refused(0, _NO_DIMENSIONS)
    dims: dict[str, PartitionValue] = {}
    previous = ""
    start = 0
    while True:
        match = _DIM.match(text, start)
        if match is None:
            raise Refused(start, unexpected(text, start, "a dimension, which starts with a letter a-z"))
        dim, equals = match.group(), match.end()
        if text[equals : equals + 1] != "=":
            raise Refused(equals, unexpected(text, equals, _DIM_CHARACTERS))
        if dim == previous:
            raise Refused(start, f"dimension {dim} is given twice")
        if dim < previous:
            raise Refused(start, f"dimensions are sorted: {dim} comes before {previous}")
        comma = text.find(",", equals)
        end = len(text) if comma < 0 else comma
        dims[dim] = _read(text[:end], equals + 1)
        if comma < 0:
            return dims
        previous = dim
        start = comma + 1


def _write(value: object) -> str:
    match value:
        case None:
            return "n:"
        case bool():
            return "b:true" if value else "b:false"
        case int():
            return _write_int(value)
        case str():
            return _write_str(value)
        case dt.datetime():
            return _write_time(value)
        case dt.date():
            return "d:" + value.isoformat()
    kind = type(value).__name__
    raise ParseError(
        "partition value",
        str(value),
        0,
        f"{kind} cannot be a partition value: use str, int, bool, date or time",
    )


def _write_int(value: int) -> str:
    # Thousands of digits are not even written.
    if not _MIN_INT <= value <= _MAX_INT:
        problem = f"the number is not between {_MIN_INT} and {_MAX_INT}"
        raise ParseError("partition value", f"a number of {value.bit_length()} bits", 0, problem)
    return f"i:{value}"


def _write_str(value: str) -> str:
    try:
        encoded = value.encode()
    except UnicodeEncodeError as error:
        problem = "half of a surrogate pair, which UTF-8 cannot hold"
        raise ParseError("partition value", value, error.start, problem) from None
    return "s:" + base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def _write_time(value: dt.datetime) -> str:
    if value.tzinfo is None:
        raise ParseError("partition value", str(value), 0, "a time needs a zone: use datetime.UTC")
    try:
        return "t:" + write_time(value)
    except OverflowError:
        problem = "in UTC it is not between the years 1 and 9999"
        raise ParseError("partition value", str(value), 0, problem) from None


def read_value(text: str) -> PartitionValue:
    """Read one value of a canonical text; raises `Refused` with the position in it.

    >>> read_value("s:ZXU")
    'eu'
    """
    return _read(text, 0)


def _read(text: str, start: int) -> PartitionValue:
    """Read `tag:value` from `start` to the end of `text`."""
    tag = text[start : start + 1]
    if tag not in {"s", "i", "b", "d", "t", "n"}:
        raise Refused(start, unexpected(text, start, "a tag: s, i, b, d, t or n"))
    if text[start + 1 : start + 2] != ":":
        raise Refused(start + 1, unexpected(text, start + 1, '":" after the tag'))
    at = start + 2
    if tag == "s":
        return _read_str(text, at)
    if tag == "i":
        return _read_int(text, at)
    if tag == "d":
        date = read_date(text, at)
        _end(text, at + 10)
        return date
    if tag == "t":
        time = read_time(text, at)
        _end(text, at + 27)
        return time
    value = text[at:]
    if tag == "b":
        if value not in {"true", "false"}:
            raise Refused(at, unexpected(text, at, "true or false"))
        return value == "true"
    if value:
        raise Refused(at, "null has no value: write n: and nothing after it")
    return None


def _read_str(text: str, start: int) -> str:
    encoded = text[start:]
    for offset, character in enumerate(encoded):
        if character not in _BASE64:
            at = start + offset
            raise Refused(at, unexpected(text, at, 'base64url: A-Z, a-z, 0-9, "-" or "_"'))
    try:
        data = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        raise Refused(len(text), "base64url of this length is incomplete") from None
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != encoded:
        raise Refused(len(text) - 1, "the last character has bits that are not part of the text")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(start, "the bytes of the string are not UTF-8") from None


def _read_int(text: str, start: int) -> int:
    value = text[start:]
    first = start + value.startswith("-")
    digits = text[first:]
    for offset, character in enumerate(digits):
        if not is_digit(character):
            raise Refused(first + offset, unexpected(text, first + offset, "a decimal digit"))
    if not digits:
        raise Refused(first, unexpected(text, first, "a decimal digit"))
    if value == "-0":
        raise Refused(start, "zero has no sign: write 0")
    if len(digits) > 1 and digits[0] == "0":
        raise Refused(first, "a number has no leading zeros")
    if len(digits) > 19 or not _MIN_INT <= int(value) <= _MAX_INT:
        raise Refused(start, f"the number is not between {_MIN_INT} and {_MAX_INT}")
    return int(value)


def _end(text: str, end: int) -> None:
    if len(text) > end:
        raise Refused(end, unexpected(text, end, "the end of the value"))


def _short(value: PartitionValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return write_time(value).replace(".000000Z", "Z")
        case str():
            return _quoted(value) if _is_ambiguous(value) else value
        case dt.date():
            return value.isoformat()
        case int():
            return str(value)


def _lone(value: PartitionValue) -> str:
    """Write the value of the only dimension. Its kind is known wherever it is read."""
    if not isinstance(value, str):
        return _short(value)
    is_bare = value != "" and ".." not in value and not _has_punctuation(value)
    return value if is_bare else _quoted(value)


def _is_ambiguous(text: str) -> bool:
    """Say whether a reader could take the bare string for another value, or for punctuation of the key."""
    looks_like_a_number_or_time = re.fullmatch(r"[0-9+\-:.TZ]*[0-9][0-9+\-:.TZ]*", text) is not None
    is_a_word = text in {"", "true", "false", "null"}
    return looks_like_a_number_or_time or is_a_word or _has_punctuation(text)


def _has_punctuation(text: str) -> bool:
    """Say whether a string has punctuation of keys in it, or begins like a value of a canonical key."""
    looks_canonical = re.match(r"[sibdtn]:", text) is not None
    return looks_canonical or any(c in ',="\\[]' or c.isspace() or _is_control(c) for c in text)


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return (
        '"' + "".join(escapes.get(c) or (f"\\u{{{ord(c):x}}}" if _is_control(c) else c) for c in text) + '"'
    )


def _is_control(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0
