"""The machine resources a task needs."""

from __future__ import annotations

from servo.frozen import Frozen
from servo.sizes import millicores, size_in_bytes


class Compute(Frozen):
    """Processor and memory that a task needs.

    A worker holds the task to it: who takes more memory fails with `OUT_OF_MEMORY`, and other cores are not
    used.

    >>> Compute(cpu="500m", memory="2GiB").to_manifest()
    {'cpu_millicores': 500, 'memory_bytes': 2147483648}
    """

    __slots__ = ("cpu_millicores", "memory_bytes")
    cpu_millicores: int | None
    memory_bytes: int | None

    def __init__(self, *, cpu: str | float | None = None, memory: str | int | None = None) -> None:
        """Take cores, such as `0.5` or `"500m"`, and memory, such as `"2GiB"`."""
        self._set(
            cpu_millicores=None if cpu is None else millicores("Compute(cpu=)", cpu),
            memory_bytes=None if memory is None else size_in_bytes("Compute(memory=)", memory),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give what was asked for as the manifest has it."""
        found: dict[str, object] = {}
        if self.cpu_millicores is not None:
            found["cpu_millicores"] = self.cpu_millicores
        if self.memory_bytes is not None:
            found["memory_bytes"] = self.memory_bytes
        return found
