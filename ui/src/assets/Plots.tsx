// Every number that was recorded of materializations, over time. A point is a materialization and leads to its run.
import { useMemo } from "react";
import { useLocation } from "wouter";
import type { Schemas } from "../api/client";
import { bytes, exactly, figure, runHref } from "../parts/format";

type Item = Schemas["MaterializationRecord"];

interface Point {
  at: number;
  value: number;
  item: Item;
}

const MOST = 6;
const [WIDTH, HEIGHT, PAD] = [320, 110, 14];

export function seriesOf(items: readonly Item[]): [string, Point[]][] {
  const found = new Map<string, Point[]>();
  const add = (name: string, value: unknown, item: Item) => {
    if (typeof value !== "number" || !Number.isFinite(value)) return;
    const points = found.get(name) ?? [];
    points.push({ at: Date.parse(item.materialized_at), value, item });
    found.set(name, points);
  };
  for (const item of items) {
    add("rows", item.row_count, item);
    for (const [name, value] of Object.entries(item.metadata ?? {})) add(name, value, item);
    add("bytes", item.byte_size, item);
  }
  return [...found].filter(([, points]) => points.length > 1).slice(0, MOST);
}

export function Plots({ items }: { items: readonly Item[] }) {
  const series = useMemo(() => seriesOf(items), [items]);
  if (series.length === 0) return null;
  return (
    <div className="plots">
      {series.map(([name, points]) => (
        <Plot key={name} name={name} points={points} />
      ))}
    </div>
  );
}

function Plot({ name, points }: { name: string; points: readonly Point[] }) {
  const [, navigate] = useLocation();
  // In the order of partitions where there are any: that is the time of the data.
  const sorted = useMemo(() => [...points].sort((a, b) => (a.item.partition != null && b.item.partition != null ? (a.item.partition < b.item.partition ? -1 : 1) : a.at - b.at)), [points]);
  const values = sorted.map((point) => point.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (index: number) => PAD + (index / Math.max(1, sorted.length - 1)) * (WIDTH - 2 * PAD);
  const y = (value: number) => HEIGHT - PAD - (high === low ? 0.5 : (value - low) / (high - low)) * (HEIGHT - 2 * PAD);
  const last = sorted.at(-1);
  const text = name === "bytes" ? bytes : figure;
  return (
    <figure className="plot-box" style={{ margin: 0 }}>
      <figcaption className="row" style={{ fontSize: 13 }}>
        <strong>{name === "bytes" ? "size" : name}</strong>
        <span className="grow" />
        <span className="muted">{last === undefined ? "" : text(last.value)}</span>
      </figcaption>
      <svg className="plot" viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} preserveAspectRatio="none" role="img" aria-label={`${name}: from ${text(low)} to ${text(high)}`}>
        <polyline points={sorted.map((point, index) => `${String(x(index))},${String(y(point.value))}`).join(" ")} fill="none" stroke="var(--muted)" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
        {sorted.length <= 120
          ? sorted.map((point, index) => (
              <circle
                key={point.item.materialization_id}
                cx={x(index)}
                cy={y(point.value)}
                r="2.6"
                fill="var(--text)"
                style={{ cursor: "pointer" }}
                onClick={() => {
                  navigate(runHref(point.item.run_id));
                }}
              >
                <title>{`${point.item.partition ?? exactly(point.item.materialized_at)}: ${text(point.value)}`}</title>
              </circle>
            ))
          : null}
      </svg>
      <div className="row muted" style={{ fontSize: 11 }}>
        <span>{sorted[0]?.item.partition ?? ""}</span>
        <span className="grow" />
        <span>
          {text(low)} … {text(high)}
        </span>
        <span className="grow" />
        <span>{last?.item.partition ?? ""}</span>
      </div>
    </figure>
  );
}
