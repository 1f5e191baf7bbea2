"""Resources that store assets elsewhere than in Servo's own files.

- `DuckDB`: tables of one database file
- `Delta`: tables of Delta Lake, where the package `deltalake` is installed
- `Bytes`: whatever a function of yours makes into bytes, and another out of them: models, images

>>> import servo
>>> import servo.io
>>> with servo.collecting():
...     numbers = servo.resource("numbers", servo.io.Bytes(dump=lambda n: b"%d" % n, load=int))
...
...     @servo.asset(io=numbers)
...     def answer() -> int:
...         return 42
>>> answer.spec.io
'numbers'

What they store is kept under the id of its materialization, and read by it: data that a check blocks, or that
a failed task left, is never read.
"""

from __future__ import annotations

from servo.io.codec import Bytes
from servo.io.delta import Delta
from servo.io.duckdb import DuckDB

__all__ = ["Bytes", "Delta", "DuckDB"]
