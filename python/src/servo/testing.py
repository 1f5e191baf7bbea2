"""Help for tests of projects.

Functions of assets stay functions, so a test can call them. What takes a context is given one from here:

>>> import servo
>>> from servo import testing
>>> with servo.collecting():
...     @servo.asset(partitions=servo.DailyPartitions(start="2013-01-01"))
...     def flights(ctx):
...         return f"flights-{ctx.partition.date}.csv"
>>> flights(testing.context(partition="2013-01-01"))
'flights-2013-01-01.csv'

`servo.materialize` makes several assets, with their checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servo.dependencies import key_of
from servo.in_memory import Materialized, local_context, materialize
from servo.partition_text import read_partition
from servo.project import nearest_settings
from servo.runner.pool import Pool
from servo.runner.secrets import Secrets

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from servo.dependencies import AssetLike
    from servo.keys import PartitionKey
    from servo.partitions import Partitions
    from servo.runner.context import TaskContext

__all__ = ["Materialized", "context", "materialize"]


def context(  # noqa: PLR0913 - each is named
    *,
    partition: str | dt.date | PartitionKey | Mapping[str, object] | None = None,
    partitions: Partitions | None = None,
    asset: AssetLike = "test.asset",
    selected_outputs: Sequence[AssetLike] | None = None,
    config: Any = None,  # noqa: ANN401 - the class of the user
    resources: Mapping[str, object] | None = None,
    secrets: Mapping[str, str] | None = None,
    run_id: str = "run_test",
    attempt: int = 1,
) -> TaskContext:
    """Make a context to call a function with.

    Args:
        partition: The partition, as people write it.
        partitions: The partitions that it is one of; without them, what it looks like.
        asset: The asset that is made.
        selected_outputs: The assets that are made, of a function that makes several.
        config: The configuration, an object or values by name.
        resources: Resources by name. Each is set up when it is first asked for.
        secrets: Values of secrets by name.
        run_id: The run.
        attempt: Which attempt this is.

    >>> ctx = context(partition={"date": "2013-01-01", "region": "eu"}, secrets={"TOKEN": "x"})
    >>> str(ctx.partition), ctx.secrets["TOKEN"], ctx.attempt
    ('date=2013-01-01,region=eu', 'x', 1)
    """
    chosen = [asset] if selected_outputs is None else selected_outputs
    made = local_context(
        assets=tuple(key_of("context(asset=)", each) for each in chosen),
        partition=None if partition is None else read_partition(partition, partitions),
        config={},
        resources=Pool(resources or {}, nearest_settings()),
        secrets=Secrets(secrets or {}),
        run_id=run_id,
        attempt=attempt,
    )
    made.config = {} if config is None else config
    return made
