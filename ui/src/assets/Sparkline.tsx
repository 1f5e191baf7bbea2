import { duration } from "../parts/format";

const [WIDTH, HEIGHT, PAD] = [88, 20, 2];

/** How long an asset took the last times, as a line, and the last of them as a figure. */
export function Sparkline({ durations }: { durations: readonly number[] }) {
  const last = durations.at(-1);
  if (last === undefined) return <span className="muted">–</span>;
  const most = Math.max(...durations, 1);
  const x = (index: number) => PAD + (index / (durations.length - 1)) * (WIDTH - 2 * PAD);
  const y = (value: number) => HEIGHT - PAD - (value / most) * (HEIGHT - 2 * PAD);
  const text = durations.length === 1 ? `It took ${duration(last)}` : `The last ${String(durations.length)} took ${duration(Math.min(...durations))} to ${duration(most)}; the newest ${duration(last)}`;
  return (
    <span className="row" title={text}>
      {/* A line needs two ends; its place stays, so that figures are below one another. */}
      <svg className="sparkline" width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
        {durations.length === 1 ? null : (
          <>
            <polyline points={durations.map((each, index) => `${String(x(index))},${String(y(each))}`).join(" ")} fill="none" stroke="var(--muted)" strokeWidth="1.3" />
            <circle cx={x(durations.length - 1)} cy={y(last)} r="2" fill="var(--text)" />
          </>
        )}
      </svg>
      <span className="muted nowrap">{duration(last)}</span>
    </span>
  );
}
