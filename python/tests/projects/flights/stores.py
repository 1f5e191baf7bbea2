"""Resources and what they are told."""

from __future__ import annotations

import servo


class Warehouse(servo.Resource):
    """A store of tables."""

    def __init__(self, url: str) -> None:
        """Remember where it is."""
        self.url = url


class Archive(Warehouse):
    """A store of old tables."""


warehouse = servo.resource("warehouse", Warehouse("duckdb:///flights.duckdb"))
archive = servo.resource("archive", Archive("s3://flights/archive"))
