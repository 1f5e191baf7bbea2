"""Checks that a run covered enough to prove anything."""

from __future__ import annotations

from typing import Any

# Seconds in which there must be one at least; usually there are three or more.
EVERY = {
    "faults": 4,
    "runs": 2,
    "runs that succeeded": 3,
    "measured restarts": 30,
}
# The same for what happens without anybody asking for runs, as the checker counts it.
AUTOMATED = {
    "ticks": 4,
    "evaluations": 10,
    "messages": 20,
    "chunks": 20,
    "condition requests": 40,
    "notifications": 60,
    "wipes": 100,
    "stale evaluations": 150,
    "renames": 200,
}
# The same for workers that share a name, and for those that are refused for their code or their disk.
WORKERS = {
    "attempts of namesakes": 10,
    "refusals of other code": 100,
    "refusals of another disk": 60,
}
# The same for each action on each kind of process, so that none of them is forgotten.
EVERY_FAULT = 100
FAULTS = tuple(f"{action} {kind}" for action in ("kill", "stop") for kind in ("server", "worker", "runner"))


def shortfalls(figures: dict[str, Any]) -> list[str]:
    """Say of what there was too little, given how long it went on."""
    seconds: float = figures["seconds"]
    faults: dict[str, int] = figures["faults"]
    counted = {
        "faults": sum(faults.values()),
        "runs": sum(figures["runs"].values()),
        "runs that succeeded": figures["runs"].get("SUCCEEDED", 0),
        "measured restarts": figures["ready"]["count"],
    }
    counted |= {name: figures["counts"].get(name, 0) for name in (*AUTOMATED, *WORKERS)}
    # A run of any length must have some of these.
    least = {name: max(1, int(seconds / every)) for name, every in EVERY.items()}
    least |= {name: int(seconds / every) for name, every in (AUTOMATED | WORKERS).items()}
    counted |= {f'faults "{name}"': faults.get(name, 0) for name in FAULTS}
    least |= {f'faults "{name}"': int(seconds / EVERY_FAULT) for name in FAULTS}
    return [
        f"too little to prove anything: {counted[name]} {name} in {seconds:.0f} s, not at least {number}"
        for name, number in least.items()
        if counted[name] < number
    ]
