"""A server that speaks S3, for tests, and what is in it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = Path(__file__).with_name("s3_server.py")
BUCKET = "lake"


class S3:
    """The server, as somebody sees it who does not use Servo."""

    def __init__(self, endpoint: str) -> None:
        """Connect, and make a bucket."""
        self._client = boto3.client("s3", endpoint_url=endpoint)
        self._client.create_bucket(Bucket=BUCKET)

    def keys(self, prefix: str = "") -> list[str]:
        """List the keys of objects, without the empty ones that stand for directories."""
        return [key for key in self._all(prefix) if not key.endswith("/")]

    def _all(self, prefix: str) -> list[str]:
        found = self._client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for each in found.get("Contents", [])]

    def clear(self) -> None:
        """Remove all objects."""
        for key in self._all(""):
            self._client.delete_object(Bucket=BUCKET, Key=key)


@contextmanager
def s3_server() -> Iterator[S3]:
    """Start a server on a free port, with the environment set up for it."""
    with (
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            endpoint = f"http://127.0.0.1:{int(server.stdout.readline())}"
            for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
                patch.delenv(name, raising=False)
            patch.setenv("AWS_ENDPOINT_URL", endpoint)
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            patch.setenv("AWS_ACCESS_KEY_ID", "test")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
            yield S3(endpoint)
        finally:
            server.stdin.close()
