import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { ticksQuery } from "../api/queries";
import { exactly, runHref } from "../parts/format";
import { Mark, toneOf, wordOf } from "../parts/State";

export const tickText = (tick: Schemas["Tick"]) => `${exactly(tick.scheduled_for).split("\n")[0] ?? ""}: ${wordOf(tick.status).toLowerCase()}${tick.reason == null ? "" : `, ${tick.reason}`}`;

/** The last ticks as marks, the newest at the right. */
export function Ticks({ schedule }: { schedule: string }) {
  const { data } = useQuery(ticksQuery(schedule, 12));
  return (
    <span className="ticks">
      {[...(data?.items ?? [])].reverse().map((tick) => {
        const run = tick.runs?.[0];
        const mark = <Mark tone={toneOf(tick.status)} label={tickText(tick)} />;
        return run === undefined ? (
          <span key={tick.tick_id} title={tickText(tick)}>
            {mark}
          </span>
        ) : (
          <Link key={tick.tick_id} href={runHref(run.run_id)} title={tickText(tick)}>
            {mark}
          </Link>
        );
      })}
      {data?.items.length === 0 ? <span className="muted">none yet</span> : null}
    </span>
  );
}
