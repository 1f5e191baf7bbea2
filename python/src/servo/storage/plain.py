"""Values that need no library of tables: JSON, bytes and files."""

from __future__ import annotations

import json
import os
from itertools import chain
from typing import TYPE_CHECKING, Final

from servo.storage import ordinary
from servo.storage.digests import digest_of, digest_of_file
from servo.storage.errors import UnsupportedType
from servo.storage.locations import locate
from servo.storage.previews import of_rows
from servo.storage.records import BIN, DATA, JSON, Stored

if TYPE_CHECKING:
    from servo.storage.locations import Location

JSON_TYPES: Final = (dict, list, tuple, str, int, float, bool)
"""Types that can be stored as JSON if their items can."""
_JSON_TYPES: Final = frozenset({*JSON_TYPES, type(None)})
_MAX_DEPTH: Final = 500
_SCALARS: Final = frozenset({str, int, float, bool})
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def store_json(value: object, directory: str, keep: int = 0) -> Stored:
    """Write `data.json`: in UTF-8, without whitespace, keys in their order.

    Tuples become lists; dates, decimals, dataclasses and the like become what JSON has for them
    (`servo.storage.ordinary`). Anything else is refused, with the place where it is:

    >>> store_json({"delays": [3, {4}]}, "/nowhere")
    Traceback (most recent call last):
    servo.storage.errors.UnsupportedType: $.delays[1] is a set, which has no order: write sorted(…)
    """
    if type(value) not in _SCALARS and not _is_plain(value):
        value = ordinary.plain(value)
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
    preview = of_rows(list(value)) if isinstance(value, list | tuple) else None
    return _store(data, directory, JSON, keep, rows=rows, preview=preview)


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


def _store(  # noqa: PLR0913 - all that is known
    data: bytes,
    directory: str,
    format_: str,
    keep: int,
    *,
    rows: int | None = None,
    preview: dict[str, object] | None = None,
) -> Stored:
    name, size, digest = DATA[format_], len(data), digest_of(data)
    content = data if size <= keep else None
    if content is None:
        with locate(directory).join(name).writer() as file:
            file.write(data)
    return Stored(
        format_,
        files=[name],
        row_count=rows,
        byte_size=size,
        content_hash=digest,
        preview=preview,
        content=content,
    )


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
