"""The summary of a chaos run, as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from chaos.coverage import shortfalls
from chaos.recovery import measured, quantile

if TYPE_CHECKING:
    from chaos.check.findings import Findings
    from chaos.check.model import Model
    from chaos.run import ChaosRun

SHOWN = 20


def summary(
    chaos_run: ChaosRun, findings: Findings, model: Model, seconds: float, ready_p99: float
) -> dict[str, Any]:
    """Give every figure, and everything that is wrong."""
    restarts = measured(chaos_run.recovery.starts, chaos_run.killer.faults, model, ready_p99)
    states: dict[str, int] = {}
    for run in model.runs.values():
        states[str(run.state)] = states.get(str(run.state), 0) + 1
    figures: dict[str, Any] = {
        "seed": chaos_run.seed,
        "seconds": seconds,
        "faults": chaos_run.killer.by_kind(),
        "injected": [asdict(fault) for fault in chaos_run.killer.faults],
        "counts": findings.counts,
        "runs": dict(sorted(states.items())),
        "requests repeated": chaos_run.load.repeated,
        "requests refused": chaos_run.load.refused,
        "server starts": chaos_run.server.starts,
        "cut short": restarts.cut_short,
        "never ready": restarts.failed,
        "ready": _quantiles(restarts.ready),
        "ready times": [round(value, 3) for value in restarts.ready],
        "works again": _quantiles(restarts.works),
        "rested": chaos_run.rested,
        "found": findings.by_kind(),
        "findings": [f"{finding.kind}: {finding.text}" for finding in findings.found],
        "problems": chaos_run.problems + chaos_run.load.problems,
    }
    figures["problems"] += [*_slow(figures, ready_p99), *shortfalls(figures)]
    return figures


def _slow(figures: dict[str, Any], ready_p99: float) -> list[str]:
    said = []
    if figures["never ready"]:
        said.append(f"{figures['never ready']} starts of the server never came to ready, without a fault")
    p99 = figures["ready"]["p99"]
    if p99 is not None and p99 > ready_p99:
        said.append(f"restart to ready: p99 is {p99} s, not at most {ready_p99} s")
    return said


def _quantiles(values: list[float]) -> dict[str, float | int | None]:
    figures = {name: quantile(values, part) for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
    return {"count": len(values)} | {
        name: None if value is None else round(value, 3) for name, value in figures.items()
    }


def lines(figures: dict[str, Any]) -> list[str]:
    """Give the summary for people."""
    rows = [("seconds", f"{figures['seconds']:.0f}, seed {figures['seed']}")]
    rows += [(name, str(count)) for name, count in figures["faults"].items()]
    rows += [(name, str(count)) for name, count in figures["counts"].items()]
    rows += [(f"runs {state}", str(count)) for state, count in figures["runs"].items()]
    rows += [
        ("requests repeated", str(figures["requests repeated"])),
        ("starts of the server", f"{figures['server starts']}, {figures['cut short']} cut short"),
        ("restart to ready", _times(figures["ready"])),
        ("restart to work done", _times(figures["works again"])),
        ("all at rest after", f"{figures['rested']:.1f} s"),
    ]
    rows += [(kind, str(count)) for kind, count in figures["found"].items()]
    told = [f"{name:<22}{value}" for name, value in rows]
    said = figures["problems"] + figures["findings"]
    told += ["", *said[:SHOWN]] if said else []
    if len(said) > SHOWN:
        told.append(f"and {len(said) - SHOWN} more")
    return told


def _times(figures: dict[str, float | int | None]) -> str:
    texts = [f"{name} {figures[name]} s" for name in ("p50", "p99", "max")]
    return ", ".join(texts) + f" of {figures['count']}"
