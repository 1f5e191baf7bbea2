"""A sensor for new files: in a directory, or below a prefix of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servo.arguments import text, wrong
from servo.durations import milliseconds
from servo.evaluating import MAX_REQUESTS
from servo.frozen import Frozen
from servo.location import here
from servo.registry import current
from servo.requests import RunRequest, SensorResult, SkipReason
from servo.run_sources import options
from servo.sensors import Sensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from servo.context import SensorContext
    from servo.durations import Duration


class File(Frozen):
    """A file that a sensor has found.

    >>> File("inbox/a.csv", "inbox/a.csv", 3, 1_700_000_000_000_000_000).name
    'a.csv'
    """

    __slots__ = ("modified_ns", "path", "size", "uri")
    path: str
    uri: str
    size: int
    modified_ns: int

    def __init__(self, path: str, uri: str, size: int, modified_ns: int) -> None:
        """Take what is known of it.

        Args:
            path: Where it is below the directory or the prefix, with slashes.
            uri: Where to read it.
            size: Its bytes.
            modified_ns: When it was last changed, in nanoseconds since 1970.
        """
        self._set(path=path, uri=uri, size=size, modified_ns=modified_ns)

    @property
    def name(self) -> str:
        """Its name, without directories."""
        return self.path.rpartition("/")[2]

    @property
    def run_key(self) -> str:
        """A key that a changed file does not share with what it was before."""
        return f"{self.path}@{self.modified_ns}"


def file_sensor(  # noqa: PLR0913 - each is named
    path: str,
    *,
    name: str,
    selection: str | None = None,
    pattern: str = "*",
    request: Callable[[File], RunRequest | None] | None = None,
    min_age: Duration = "2s",
    interval: Duration = "30s",
    description: str | None = None,
    tags: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
    priority: int = 0,
    timeout: Duration | None = None,
    enabled: bool = True,
) -> Sensor:
    """Declare a sensor that requests a run for each new or changed file.

    Files are taken in the order in which they were last changed; the cursor says how far it has come.

    Args:
        path: A directory of the worker, or a prefix such as `s3://bucket/inbox`.
        name: The name.
        selection: What it requests, such as `raw.uploads`.
        pattern: Which files: a name with `*` and `?`, or with slashes a path below `path`.
        request: Makes the request for a file, or None to leave it out; without it, a run with the tag `file`.
        min_age: Files that were changed more recently are left for later: they may still be written.
        interval: How long after one evaluation the next one starts.
        description: For people.
        tags: Tags of the runs that it requests.
        config: Configuration of the runs, by field or by `namespace.name:field`.
        priority: Runs with a higher one get slots first.
        timeout: The longest that one look may take; 60 seconds, unless given.
        enabled: Whether it starts running when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     uploads = file_sensor("inbox", name="uploads", pattern="*.csv", selection="raw.uploads")
    >>> found.sensors
    [<sensor uploads>]
    """
    where, wanted = text("file_sensor(path)", path, "inbox"), text("file_sensor(pattern=)", pattern, "*.csv")
    if request is not None and not callable(request):
        raise wrong("file_sensor(request=)", request, "a function that takes a File")
    said = options(
        "file_sensor",
        selection=selection,
        description=description,
        tags=tags,
        config=config,
        priority=priority,
        timeout=timeout,
        enabled=enabled,
    )
    said["interval_ms"] = milliseconds("file_sensor(interval=)", interval)
    age_ns = milliseconds("file_sensor(min_age=)", min_age) * 1_000_000
    own_name = text("file_sensor(name=)", name, "uploads")

    def look(ctx: SensorContext) -> SensorResult | SkipReason:
        latest = int(ctx.evaluated_at.timestamp() * 1_000_000_000) - age_ns
        return new_files(files(where, wanted), ctx.cursor, latest, request)

    # A worker finds it by this name.
    look.__module__, look.__qualname__ = __name__, f"file_sensor.{own_name}"
    found = Sensor(here(), own_name, look, **said)
    current().sensors.append(found)
    return found


def new_files(
    found: list[File], cursor: str | None, latest: int, request: Callable[[File], RunRequest | None] | None
) -> SensorResult | SkipReason:
    """Request runs for files after a cursor that were changed up to a time, as many as one evaluation may.

    >>> a, b = File("a.csv", "a.csv", 1, 10), File("b.csv", "b.csv", 1, 20)
    >>> result = new_files([b, a], None, 15, None)
    >>> result.cursor, [request.tags["file"] for request in result.run_requests]
    ('10/a.csv', ['a.csv'])
    >>> new_files([b, a], "20/b.csv", 100, None).message
    'no new files'
    """
    after = _place(cursor)
    new = sorted((each.modified_ns, each.path, each) for each in found if each.modified_ns <= latest)
    new = [each for each in new if after is None or each[:2] > after][:MAX_REQUESTS]
    if not new:
        return SkipReason("no new files")
    requests = [made for _, _, file in new if (made := _requested(file, request)) is not None]
    return SensorResult(requests, cursor=f"{new[-1][0]}/{new[-1][1]}")


def _requested(file: File, request: Callable[[File], RunRequest | None] | None) -> RunRequest | None:
    if request is None:
        return RunRequest(run_key=file.run_key, tags={"file": file.uri})
    made = request(file)
    if made is not None and made.run_key is None:
        fields = {field: getattr(made, field) for field in RunRequest.__slots__}
        return RunRequest(**{**fields, "run_key": file.run_key})
    return made


def _place(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    time, _, path = cursor.partition("/")
    if not time.isdecimal():
        raise ValueError(f"the cursor {cursor!r} is not one of a file sensor: set it back")
    return int(time), path


def files(path: str, pattern: str) -> list[File]:
    """Give the files of a directory or below a prefix that fit a pattern."""
    import fnmatch  # noqa: PLC0415 - only where there are such sensors

    listed = _objects(path) if "://" in path and not path.startswith("file://") else _entries(path)
    fits = [each for each in listed if fnmatch.fnmatch(each.path if "/" in pattern else each.name, pattern)]
    return [each for each in fits if not each.name.startswith(".")]


def _entries(path: str) -> Iterator[File]:
    root = Path(path.removeprefix("file://"))
    if not root.is_dir():
        raise FileNotFoundError(f"there is no directory {root}: make it, or correct path= of the sensor")
    for directory, _, names in os.walk(root):
        for name in names:
            whole = Path(directory, name)
            try:
                status = whole.stat()
            except FileNotFoundError:
                # It was removed meanwhile.
                continue
            yield File(whole.relative_to(root).as_posix(), str(whole), status.st_size, status.st_mtime_ns)


def _objects(path: str) -> Iterator[File]:
    from servo.storage.buckets import BucketLocation  # noqa: PLC0415 - needs pyarrow

    place = BucketLocation(path.rstrip("/"))
    scheme = path.partition("://")[0]
    for each in place.objects():
        info: Any = each
        key = str(info.path)
        yield File(key[len(place.key) + 1 :], f"{scheme}://{key}", info.size, info.mtime_ns)
