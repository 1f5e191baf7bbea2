"""Requests as values: what is sent, and what is made of the answer. Shared by both clients."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import uniform
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from servo.client import records
from servo.client.errors import MalformedError, ProblemError
from servo.keys import AssetKey

T = TypeVar("T")
JSON = records.JSON
Texts = str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request; one with a key can be repeated, and is done once."""

    read: Callable[[Any], T]
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    key: str | None = None

    def target(self) -> str:
        """Give the path and the query as they are sent."""
        pairs = [(name, _text(value)) for name, value in self.query.items() if value is not None]
        return f"{self.path}?{urlencode(pairs)}" if pairs else self.path

    def headers(self, bearer: str | None) -> dict[str, str]:
        """Give the headers of it."""
        found = {"Accept": "application/json"}
        if bearer:
            found["Authorization"] = f"Bearer {bearer}"
        if self.body is not None:
            found["Content-Type"] = "application/json"
        if self.key is not None:
            found["Idempotency-Key"] = self.key
        return found

    def payload(self) -> bytes | None:
        """Give the body as it is sent."""
        return None if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()

    def answer(self, status: int, body: bytes) -> T:
        """Read an answer, or raise the problem that it is."""
        try:
            value = json.loads(body) if body else None
        except ValueError:
            raise MalformedError(f"{self.method} {self.path} was answered {status} without JSON") from None
        if status >= 400 or status < 200:
            raise problem(status, value)
        try:
            return self.read(value)
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedError(
                f"{self.method} {self.path} was answered something else: {error!r}"
            ) from error


def problem(status: int, value: object) -> ProblemError:
    """Give the problem of an answer that is no success."""
    document = value if isinstance(value, dict) else {"detail": f"status {status} without a reason"}
    return ProblemError.of({**document, "status": status})


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list."""

    items: list[T]
    next_cursor: str | None


def pages(of: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    """Give what reads a page of something."""
    return lambda value: Page([of(each) for each in value["items"]], value.get("next_cursor"))


def next_page(call: Call[Page[T]], cursor: str) -> Call[Page[T]]:
    """Give the request for the page that begins there."""
    return Call(call.read, call.method, call.path, {**call.query, "cursor": cursor})


def get(read: Callable[[Any], T], *segments: object, **query: object) -> Call[T]:
    """Read something."""
    return Call(read, "GET", path(*segments), query)


def change(
    read: Callable[[Any], T], *segments: object, body: Mapping[str, Any], key: str | None = None
) -> Call[T]:
    """Change something, under a key of its own unless one is given."""
    given = {name: value for name, value in body.items() if value is not None}
    return Call(read, "POST", path(*segments), {}, given, key or new_key())


def path(*segments: object) -> str:
    """Give the path of a route.

    >>> path("assets", "raw", "a/b")
    '/api/v1/assets/raw/a%2Fb'
    """
    return "/".join(("/api/v1", *(quote(str(each), safe="") for each in segments)))


def new_key() -> str:
    """Make a key that nobody has used."""
    return secrets.token_hex(16)


def delays(first: float, most: float) -> Iterator[float]:
    """Give how long to wait before each attempt, longer and longer and never quite the same."""
    delay = first
    while True:
        yield uniform(delay / 2, delay)  # noqa: S311 - no secret
        delay = min(delay * 2, most)


def partitions(keys: Texts, ranges: Texts, **flags: bool) -> dict[str, Any] | None:
    """Say which partitions are meant, with flags such as `missing`; `None` if nothing was said."""
    chosen: dict[str, Any] = {"keys": _list(keys), "ranges": _list(ranges), **flags}
    return {name: value for name, value in chosen.items() if value} or None


def run_body(  # noqa: PLR0913 - as many as a request has fields
    selection: str,
    which: dict[str, Any] | None,
    *,
    config: Mapping[str, Any] | None = None,
    run_key: str | None = None,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    timeout: float | None = None,
    retry: bool = True,
    check: bool = False,
) -> JSON:
    """Give the body of a request for a run or a plan."""
    return {
        "selection": selection,
        "partitions": which,
        "config": dict(config) if config else None,
        "run_key": run_key,
        "priority": priority or None,
        "labels": dict(labels) if labels else None,
        "timeout_ms": None if timeout is None else round(timeout * 1000),
        "no_retry": None if retry else True,
        "operation": "check" if check else None,
    }


def asset_path(asset: str | AssetKey) -> tuple[str, str, str]:
    """Give the segments of an asset, which is written `namespace.name` or `namespace/name`."""
    key = asset if isinstance(asset, AssetKey) else AssetKey.parse(asset.replace("/", "."))
    return "assets", key.namespace, key.name


def run_id(run: str | records.Record) -> str:
    """Give the id of a run, or of what says which run."""
    return run if isinstance(run, str) else str(run["run_id"])


def event_id(after: str | records.Record | None) -> str | None:
    """Give the event that is waited for: of a change that was accepted."""
    return after.get("accepted_event_id") if isinstance(after, records.Record) else after


def _list(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else [str(each) for each in texts]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(map(str, value)) if isinstance(value, Iterable) else str(value)
