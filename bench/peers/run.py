#!/usr/bin/env python3
"""Run chosen peers and workloads; keep results in a JSON file, print a table.

  python3 -m peers.run --peers floor,servo,rivers --workloads W1,W2 --out results.json
  python3 -m peers.run --table --out results.json
"""

import argparse
import fcntl
import importlib
import json
import os
import tempfile
import time
import traceback
from pathlib import Path

from .common import remove_all

TITLES = {
    "W0": "physical floor", "W1": "cold start", "W2": "40-task chain",
    "W3": "fan-out 1-500-1", "W4": "1000-asset layered graph", "W5": "365-partition backfill",
    "W6": "trigger to start latency", "W7": "idle memory", "W8": "runs list latency",
}


def table(results):
    lines = ["| workload | peer | metric | median | p95 | n | note |", "|---|---|---|---:|---:|---:|---|"]
    for key in sorted(results["rows"], key=lambda k: k.split("/")[::-1]):
        peer, workload = key.split("/")
        for m in results["rows"][key]:
            if "error" in m:
                lines.append(f"| {workload} {TITLES[workload]} | {peer} | FAILED | | | | {m['error'].splitlines()[-1][:160]} |")
                continue
            p95 = f"{m['p95']:.4g}" if m["n"] > 1 else ""
            lines.append(f"| {workload} {TITLES[workload]} | {peer} | {m['metric']} | {m['median']:.4g} {m['unit']} | {p95} | {m['n']} | {m['note']} |")
    return "\n".join(lines)


def machine():
    cpu = next(l.split(":")[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name"))
    ram = int(Path("/proc/meminfo").read_text().split()[1]) // 2**20
    return f"{os.cpu_count()} x {cpu}, {ram} GiB RAM, Linux {os.uname().release}"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--peers", default="floor,servo,dagster,prefect,airflow,luigi,rivers")
    args.add_argument("--workloads", default=",".join(TITLES))
    args.add_argument("--out", type=Path, default=Path("results.json"))
    args.add_argument("--table", action="store_true", help="only print what the JSON holds")
    args = args.parse_args()

    lock = open(Path(tempfile.gettempdir()) / "bench.lock", "w")
    if not args.table:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one bench at a time on this machine; waits for another

    results = json.loads(args.out.read_text()) if args.out.exists() else {"versions": {}, "rows": {}}
    results["machine"] = machine()
    for peer in [] if args.table else args.peers.split(","):
        module = "floor" if peer == "floor" else f"{peer}_bench"
        bench = importlib.import_module(f"peers.{module}").Bench()
        results["versions"][peer] = bench.version()
        for workload in args.workloads.split(","):
            run = getattr(bench, workload.lower(), None)
            if run is None:
                continue
            rows, start = [], time.monotonic()
            try:
                for row in run():
                    rows.append(row)
                    print(f"{peer} {workload} {row['metric']}: {row['median']:.4g} {row['unit']} (p95 {row['p95']:.4g}, n={row['n']})", flush=True)
            except Exception as error:
                rows.append({"error": f"{type(error).__name__}: {error}"})
                traceback.print_exc()
            results["rows"][f"{peer}/{workload}"] = rows
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text(json.dumps(results, indent=1))
            print(f"-- {peer} {workload} took {time.monotonic() - start:.0f} s", flush=True)
    remove_all()
    print(results["machine"])
    print("\n".join(f"{k}: {v}" for k, v in results["versions"].items()))
    print(table(results))


if __name__ == "__main__":
    main()
