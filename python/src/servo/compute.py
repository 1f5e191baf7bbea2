"""The machine resources a task needs."""

from __future__ import annotations

from servo.arguments import integer
from servo.frozen import Frozen
from servo.sizes import millicores, size_in_bytes


class Compute(Frozen):
    """Processors and memory that a task needs.

    A worker holds the task to it: who takes more memory fails with `OUT_OF_MEMORY`, and other cores are not
    used. How many graphics processors it has, `gpus` says, and nothing holds it to that. Memory and graphics
    processors count in what the task costs for as long as an attempt takes.

    >>> Compute(cpu="500m", memory="2GiB").to_manifest()
    {'cpu_millicores': 500, 'memory_bytes': 2147483648}
    """

    __slots__ = ("cpu_millicores", "gpus", "memory_bytes")
    cpu_millicores: int | None
    memory_bytes: int | None
    gpus: int | None

    def __init__(
        self, *, cpu: str | float | None = None, memory: str | int | None = None, gpus: int | None = None
    ) -> None:
        """Take cores, such as `0.5` or `"500m"`, memory, such as `"2GiB"`, and a number of gpus."""
        self._set(
            cpu_millicores=None if cpu is None else millicores("Compute(cpu=)", cpu),
            memory_bytes=None if memory is None else size_in_bytes("Compute(memory=)", memory),
            gpus=None if gpus is None else integer("Compute(gpus=)", gpus, 1),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give what was asked for as the manifest has it."""
        found: dict[str, object] = {}
        if self.cpu_millicores is not None:
            found["cpu_millicores"] = self.cpu_millicores
        if self.memory_bytes is not None:
            found["memory_bytes"] = self.memory_bytes
        if self.gpus is not None:
            found["gpus"] = self.gpus
        return found
