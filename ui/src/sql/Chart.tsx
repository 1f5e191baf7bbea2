// A result as lines or bars: one column along the bottom, numbers above it.
import { useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { count } from "../parts/format";
import { Empty } from "../parts/Panel";
import { shown } from "./csv";

type Result = Schemas["SqlResult"];

const MOST_POINTS = 500;
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [900, 320, 70, 40, 12];

/** The columns that a chart begins with: the first that is no number along the bottom, the first other number above. */
export function axesOf(columns: readonly { number: boolean; time: boolean }[]): { x: number; y: number } | undefined {
  const time = columns.findIndex((column) => column.time);
  const text = columns.findIndex((column) => !column.number);
  const x = time >= 0 ? time : text >= 0 ? text : 0;
  const y = columns.findIndex((column, at) => column.number && at !== x);
  return y < 0 ? undefined : { x, y };
}

export function Chart({ result }: { result: Result }) {
  const first = useMemo(() => axesOf(result.columns), [result.columns]);
  const [x, setX] = useState(first?.x ?? 0);
  const [y, setY] = useState(first?.y ?? 0);
  const [kind, setKind] = useState<"line" | "bar">(first !== undefined && result.columns[first.x]?.time === true ? "line" : "bar");
  const points = useMemo(
    () =>
      result.rows
        .slice(0, MOST_POINTS)
        .map((row) => ({ name: shown(row[x]), value: row[y] == null ? Number.NaN : Number(row[y]) }))
        .filter((point) => Number.isFinite(point.value)),
    [result.rows, x, y],
  );
  if (first === undefined) return <Empty title="Nothing to draw"><p>A chart needs a column of numbers beside another one.</p></Empty>;
  const choices = (label: string, value: number, set: (value: number) => void, which: (at: number) => boolean) => (
    <label className="row" style={{ fontSize: 13 }}>
      {label}
      <select
        className="field"
        value={value}
        onChange={(event) => {
          set(Number(event.target.value));
        }}
      >
        {result.columns.map((column, at) => (which(at) ? <option key={at} value={at}>{column.name}</option> : null))}
      </select>
    </label>
  );
  const values = points.map((point) => point.value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const span = high - low || 1;
  const step = (WIDTH - LEFT - 10) / Math.max(1, points.length);
  const at = (index: number) => LEFT + step * (index + 0.5);
  const height = (value: number) => TOP + (1 - (value - low) / span) * (HEIGHT - TOP - BOTTOM);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * span);
  const every = Math.max(1, Math.ceil(points.length / 8));
  const name = result.columns[y]?.name ?? "";
  return (
    <div className="body stack" style={{ gap: 8 }}>
      <div className="row wrap">
        {choices("Along the bottom", x, setX, () => true)}
        {choices("Above", y, setY, (index) => result.columns[index]?.number === true)}
        <span className="segments" role="group" aria-label="Drawn as">
          {(["line", "bar"] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={kind === each}
              onClick={() => {
                setKind(each);
              }}
            >
              {each === "line" ? "Line" : "Bars"}
            </button>
          ))}
        </span>
        {result.rows.length > MOST_POINTS ? <span className="muted" style={{ fontSize: 13 }}>the first {count(MOST_POINTS)} rows</span> : null}
      </div>
      {points.length === 0 ? (
        <Empty title="No numbers in that column" />
      ) : (
        <svg className="chart" viewBox={`0 0 ${String(WIDTH)} ${String(HEIGHT)}`} role="img" aria-label={`${name} by ${result.columns[x]?.name ?? ""}: ${count(points.length)} points from ${count(Math.min(...values))} to ${count(Math.max(...values))}`}>
          {marks.map((value) => (
            <g key={value}>
              <line x1={LEFT} x2={WIDTH - 10} y1={height(value)} y2={height(value)} stroke="var(--border)" />
              <text x={LEFT - 8} y={height(value) + 4} textAnchor="end">
                {count(Math.round(value * 100) / 100)}
              </text>
            </g>
          ))}
          {kind === "bar"
            ? points.map((point, index) => (
                <rect key={index} x={at(index) - step * 0.38} width={Math.max(1, step * 0.76)} y={Math.min(height(point.value), height(0))} height={Math.max(1, Math.abs(height(point.value) - height(0)))} fill="var(--accent)" rx="1.5">
                  <title>{`${point.name}: ${count(point.value)}`}</title>
                </rect>
              ))
            : null}
          {kind === "line" ? <polyline points={points.map((point, index) => `${String(at(index))},${String(height(point.value))}`).join(" ")} fill="none" stroke="var(--accent)" strokeWidth="2" /> : null}
          {kind === "line" && points.length <= 120
            ? points.map((point, index) => (
                <circle key={index} cx={at(index)} cy={height(point.value)} r="3.5" fill="var(--accent)">
                  <title>{`${point.name}: ${count(point.value)}`}</title>
                </circle>
              ))
            : null}
          {points.map((point, index) =>
            index % every === 0 ? (
              <text key={index} x={at(index)} y={HEIGHT - BOTTOM + 20} textAnchor="middle">
                {point.name.slice(0, 16)}
              </text>
            ) : null,
          )}
        </svg>
      )}
    </div>
  );
}
