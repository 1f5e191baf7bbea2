"""Write RESULTS.md and a picture from what run.py has measured.

  python3 -m peers.report results.json RESULTS.md peers.svg
"""

import json
import sys
from pathlib import Path

from .run import table

# Bars of the picture: workload, and the beginning of the metric's name by peer.
BARS = [
    ("one asset, cold", "W1", {"servo": "servo materialize", "rivers": ""}),
    ("chain of 40", "W2", {"servo": "40-asset chain: HTTP", "rivers": ""}),
    ("1 → 500 → 1", "W3", {"servo": "1-500-1: HTTP", "rivers": ""}),
    ("1,000 assets", "W4", {"servo": "1000 assets: HTTP", "rivers": ""}),
    ("365 partitions, one run", "W5", {"servo": "365 partitions, single run: HTTP", "rivers": ""}),
    ("365 partitions, 365 runs", "W5", {"servo": "365 partitions, one run each", "rivers": "365 partitions, one run each"}),
]
COLOURS = {"servo": "#1f6feb", "rivers": "#8b949e"}
ROW, BAR, LEFT, WIDTH = 48, 15, 190, 640


def seconds(results, peer, workload, prefix):
    """The fastest median of a peer in a workload whose name begins so, in seconds; none without one."""
    rows = [row for row in results["rows"].get(f"{peer}/{workload}", []) if "error" not in row and row["unit"] == "s"]
    found = [row["median"] for row in rows if row["metric"].startswith(prefix)]
    if prefix == "":
        found = [row["median"] for row in rows if "each" not in row["metric"]] if workload == "W5" else found
    return min(found, default=None)


def picture(results):
    """Horizontal bars, each pair scaled by the slower of the two."""
    height = ROW * len(BARS) + 40
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 260}" height="{height}" font-family="sans-serif" font-size="13">',
             f'<rect width="100%" height="100%" fill="#fff"/><text x="16" y="22">Seconds from trigger to done; shorter is better. {" · ".join(results["versions"].get(p, p) for p in COLOURS)}</text>']
    for number, (label, workload, prefixes) in enumerate(BARS):
        top = 40 + number * ROW
        values = {peer: seconds(results, peer, workload, prefix) for peer, prefix in prefixes.items()}
        longest = max((value for value in values.values() if value), default=1)
        lines.append(f'<text x="16" y="{top + 20}">{label}</text>')
        for place, (peer, value) in enumerate(values.items()):
            y = top + place * (BAR + 3)
            if value is None:
                lines.append(f'<text x="{LEFT}" y="{y + 12}" fill="#57606a">{peer}: not measured</text>')
                continue
            width = max(2, value / longest * (WIDTH - LEFT))
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{width:.0f}" height="{BAR}" fill="{COLOURS[peer]}"/>'
                         f'<text x="{LEFT + width + 6:.0f}" y="{y + 12}">{peer} {value:.3g} s</text>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    source, page, image = map(Path, sys.argv[1:4])
    results = json.loads(source.read_text())
    image.write_text(picture(results))
    versions = "\n".join(f"- {peer}: {version}" for peer, version in results["versions"].items())
    page.write_text(f"""# Servo beside its peers

Measured in one run by `make bench-peers` on {results["machine"]}. Every task is fib(10); each tool stores results as it
does by default. Servo syncs its log and its data before it says that something is done; rivers syncs its state, not its
data.

![Seconds from trigger to done](peers.svg)

{versions}

{table(results)}
""")


if __name__ == "__main__":
    main()
