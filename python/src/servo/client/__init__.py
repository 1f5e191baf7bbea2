"""Clients of a server: `Client` for programs that wait, `AsyncClient` for those with an event loop.

Nothing but the standard library is needed. docs/python-client.md shows them at work.
"""

from __future__ import annotations

from servo.client.asynchronous import AsyncClient
from servo.client.errors import (
    AddressError,
    AuthenticationError,
    ClientError,
    ConflictError,
    LimitError,
    MalformedError,
    NotFoundError,
    PermissionDeniedError,
    ProblemError,
    RunFailedError,
    UnreachableError,
)
from servo.client.records import (
    Accepted,
    AcceptedBackfill,
    AcceptedRun,
    Asset,
    Backfill,
    BackfillChunk,
    LogLine,
    Materialization,
    Partition,
    Plan,
    Record,
    Run,
    RunEvent,
    Table,
    Task,
)
from servo.client.sync import Client

__all__ = [
    "Accepted",
    "AcceptedBackfill",
    "AcceptedRun",
    "AddressError",
    "Asset",
    "AsyncClient",
    "AuthenticationError",
    "Backfill",
    "BackfillChunk",
    "Client",
    "ClientError",
    "ConflictError",
    "LimitError",
    "LogLine",
    "MalformedError",
    "Materialization",
    "NotFoundError",
    "Partition",
    "PermissionDeniedError",
    "Plan",
    "ProblemError",
    "Record",
    "Run",
    "RunEvent",
    "RunFailedError",
    "Table",
    "Task",
    "UnreachableError",
]
