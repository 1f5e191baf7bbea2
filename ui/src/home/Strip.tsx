// The last day: a cell per half hour, coloured by the worst of its runs. A click shows them.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { someRunsQuery } from "../api/queries";
import { plural } from "../parts/format";
import { Panel, Shown } from "../parts/Panel";
import { useNow } from "../parts/Time";
import { sourceOf, useScheduleNames } from "../runs/source";
import type { Run } from "../runs/useRun";

const CELLS = 48;
const CELL_MS = 30 * 60_000;
const MOST = 100;
const clock = new Intl.DateTimeFormat("sv-SE", { hour: "2-digit", minute: "2-digit" });

export function Strip() {
  const now = useNow();
  // The cells move on at half hours, and so does the question.
  const end = Math.ceil(now / CELL_MS) * CELL_MS;
  const start = end - CELLS * CELL_MS;
  const since = new Date(start).toISOString();
  const query = useQuery(someRunsQuery({ created_after: since }, MOST));
  return (
    <Panel title="Last 24 hours" label="Last 24 hours">
      <Shown query={query} rows={1}>
        {({ items, next_cursor }) => (
          <div className="body">
            <Rows runs={items} start={start} />
            <div className="row muted" style={{ justifyContent: "space-between", fontSize: 11, paddingTop: 4 }}>
              <span>{clock.format(start)}</span>
              {next_cursor == null ? null : <span>the newest {MOST} runs</span>}
              <span>now</span>
            </div>
          </div>
        )}
      </Shown>
    </Panel>
  );
}

const WORST = ["FAILED", "RUNNING", "QUEUED", "CANCELLED", "SUCCEEDED"];
const FILL: Record<string, string> = { FAILED: "fill-failed", RUNNING: "fill-running", QUEUED: "fill-queued", CANCELLED: "fill-queued", SUCCEEDED: "fill-succeeded" };

function Rows({ runs, start }: { runs: readonly Run[]; start: number }) {
  const schedules = useScheduleNames();
  const rows = useMemo(() => {
    const found = new Map<string, Run[][]>();
    for (const run of runs) {
      const name = sourceOf(run, schedules).text.replace(/^retry.*/, "manual").replace(/^(api)$/, "manual");
      const cells = found.get(name) ?? Array.from({ length: CELLS }, () => []);
      found.set(name, cells);
      cells[Math.min(CELLS - 1, Math.max(0, Math.floor((Date.parse(run.created_at) - start) / CELL_MS)))]?.push(run);
    }
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, 8);
  }, [runs, start, schedules]);
  if (rows.length === 0) return <p className="muted" style={{ fontSize: 13, height: 28 }}>No run in the last 24 hours.</p>;
  return (
    <div className="stack" style={{ gap: 8 }}>
      {rows.map(([name, cells]) => (
        <div key={name}>
          <div className="muted" style={{ fontSize: 12 }}>{name}</div>
          <div className="strip">
            {cells.map((each, index) => {
              const at = start + index * CELL_MS;
              if (each.length === 0) return <span key={index} />;
              const worst = WORST.find((state) => each.some((run) => run.state === state)) ?? "QUEUED";
              const query = new URLSearchParams({ created_after: new Date(at).toISOString(), created_before: new Date(at + CELL_MS).toISOString() });
              const text = `${clock.format(at)}: ${plural(each.length, "run")}, ${plural(each.filter((run) => run.state === "FAILED").length, "failed", "failed")}`;
              return <Link key={index} href={`/runs?${query.toString()}`} className={FILL[worst] ?? ""} title={text} aria-label={text} />;
            })}
          </div>
        </div>
      ))}
    </div>
  );
}
