"""Resources and what they are told."""

from __future__ import annotations

import servo


class Warehouse(servo.Resource):
    """Where tables are kept."""

    def __init__(self, url: str) -> None:
        """Remember where it is."""
        self.url = url


class Archive(Warehouse):
    """Where old tables are kept."""


warehouse = servo.resource("warehouse", Warehouse("duckdb:///flights.duckdb"))
archive = servo.resource("archive", Archive("s3://flights/archive"))
