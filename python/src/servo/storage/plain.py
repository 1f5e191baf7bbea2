"""Values that need no library: JSON, bytes and files."""

from __future__ import annotations

import json
import os
from itertools import chain
from typing import TYPE_CHECKING, Final

from servo.storage.digests import digest_of, digest_of_file
from servo.storage.errors import UnsupportedType
from servo.storage.locations import locate
from servo.storage.records import BIN, DATA, JSON, Stored

if TYPE_CHECKING:
    from servo.storage.locations import Location

JSON_TYPES: Final = (dict, list, tuple, str, int, float, bool)
"""Types that can be stored as JSON if their items can."""
_JSON_TYPES: Final = frozenset({*JSON_TYPES, type(None)})
_MAX_DEPTH: Final = 500
_SCALARS: Final = frozenset({str, int, float, bool})
_encode: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def store_json(value: object, directory: str, keep: int = 0) -> Stored:
    """Write `data.json`: in UTF-8, without whitespace, keys sorted, so that equal values have equal bytes.

    Tuples become lists. Anything that JSON has no word for is refused, with the place where it is:

    >>> store_json({"delays": [3, {4}]}, "/nowhere")
    Traceback (most recent call last):
    servo.storage.errors.UnsupportedType: $.delays[1] is a set, which JSON has no word for: write it as a \
text, a number, a list or a dict
    """
    if type(value) not in _SCALARS and not _is_plain(value):
        _refuse_others(value, "$")
    try:
        data = _encode(value).encode()
    except UnicodeEncodeError as error:
        raise UnsupportedType(
            f"a text has half of a surrogate pair, which JSON cannot hold: {error}"
        ) from None
    except ValueError as error:
        if "digits" in str(error):
            raise UnsupportedType(f"a number is too long to be written: {error}") from None
        problem = "a number is not a number (nan) or infinite, which JSON has no word for: write None instead"
        raise UnsupportedType(problem) from None
    rows = len(value) if isinstance(value, list | tuple) else None
    return _store(data, directory, JSON, keep, rows)


def store_bytes(value: bytes | bytearray | memoryview, directory: str, keep: int = 0) -> Stored:
    """Write `data.bin`."""
    return _store(bytes(value), directory, BIN, keep)


def store_file(path: os.PathLike[str], place: Location) -> Stored:
    """Copy a file: to `data.parquet` if it is one by its name, else to `data.bin`."""
    source = os.fspath(path)
    if not os.path.isfile(source):
        what = "a directory" if os.path.isdir(source) else "not there"
        raise UnsupportedType(
            f"the file {source} cannot be stored: it is {what}. Return the path of one file, or keep the "
            "data where it is and return servo.Materialization(uri=…)"
        )
    if source.endswith(".parquet"):
        from servo.storage.arrow import described  # noqa: PLC0415 - only if it is needed

        facts = described(source)
        place.join("data.parquet").add_file(source)
        return facts
    size, digest = digest_of_file(source)
    place.join("data.bin").add_file(source)
    return Stored(BIN, files=["data.bin"], byte_size=size, content_hash=digest)


def rows_are_dicts(value: object) -> bool:
    """Say whether a value is a list of rows.

    >>> rows_are_dicts([{"carrier": "AA"}]), rows_are_dicts([1]), rows_are_dicts([])
    (True, False, True)
    """
    return isinstance(value, list | tuple) and all(isinstance(row, dict) for row in value)


def _store(data: bytes, directory: str, format_: str, keep: int, rows: int | None = None) -> Stored:
    name, size, digest = DATA[format_], len(data), digest_of(data)
    content = data if size <= keep else None
    if content is None:
        with locate(directory).join(name).writer() as file:
            file.write(data)
    return Stored(format_, files=[name], row_count=rows, byte_size=size, content_hash=digest, content=content)


def _is_plain(value: object) -> bool:
    """Say whether a value surely is JSON, as most are: many times faster than to find out what is not."""
    level = [value]
    # Once more for what is in the deepest, and once to see that there is nothing in that.
    for _ in range(_MAX_DEPTH + 2):
        if not level:
            return True
        if not set(map(type, level)) <= _JSON_TYPES:
            return False
        dicts = [each for each in level if type(each) is dict]
        if not set(map(type, chain.from_iterable(dicts))) <= {str}:
            return False
        lists = [each for each in level if isinstance(each, list | tuple)]
        level = [*chain.from_iterable(map(dict.values, dicts)), *chain.from_iterable(lists)]
    raise UnsupportedType(
        f"the value is nested more than {_MAX_DEPTH} deep, or holds itself: JSON can hold neither"
    )


def _refuse_others(value: object, path: str) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                problem = f"{path} has the {type(key).__name__} {key!r} as a key, and keys are texts in JSON"
                raise UnsupportedType(f"{problem}: write str(key)")
            _refuse_others(member, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, element in enumerate(value):
            _refuse_others(element, f"{path}[{index}]")
    elif not (value is None or isinstance(value, JSON_TYPES)):
        raise UnsupportedType(
            f"{path} is a {type(value).__qualname__}, which JSON has no word for: write it as a text, "
            "a number, a list or a dict"
        )
