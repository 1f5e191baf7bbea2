// The last ticks of a schedule and the last evaluations of a sensor as marks, the newest at the right.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { evalsQuery, ticksQuery } from "../api/queries";
import { exactly, runHref } from "../parts/format";
import { Mark, toneOf, wordOf } from "../parts/State";
import { useSeen } from "../parts/useSeen";

const SHOWN = 10;

interface Happened {
  id: string;
  at: string;
  status: string;
  reason?: string | null | undefined;
  runs?: { run_id: string }[] | undefined;
}

export const happenedText = ({ at, status, reason }: Omit<Happened, "id">) => `${exactly(at).split("\n")[0] ?? ""}: ${wordOf(status).toLowerCase()}${reason == null ? "" : `, ${reason}`}`;

function Marks({ items, isKnown }: { items: readonly Happened[]; isKnown: boolean }) {
  return (
    <span className="ticks">
      {[...items].reverse().map((each) => {
        const run = each.runs?.[0];
        const text = happenedText(each);
        const mark = <Mark tone={toneOf(each.status)} label={text} />;
        return run === undefined ? (
          <span key={each.id} title={text}>
            {mark}
          </span>
        ) : (
          <Link key={each.id} href={runHref(run.run_id)} title={text}>
            {mark}
          </Link>
        );
      })}
      {isKnown && items.length === 0 ? <em className="muted">none yet</em> : null}
    </span>
  );
}

export function Ticks({ schedule }: { schedule: string }) {
  const [ref, isSeen] = useSeen<HTMLSpanElement>();
  const { data } = useQuery({ ...ticksQuery(schedule, SHOWN), enabled: isSeen });
  const items = data?.items.map((tick) => ({ id: tick.tick_id, at: tick.scheduled_for, status: tick.status, reason: tick.reason, runs: tick.runs }));
  return (
    <span ref={ref}>
      <Marks items={items ?? []} isKnown={data !== undefined} />
    </span>
  );
}

export function Evaluations({ sensor }: { sensor: string }) {
  const [ref, isSeen] = useSeen<HTMLSpanElement>();
  const { data } = useQuery({ ...evalsQuery(sensor, SHOWN), enabled: isSeen });
  const items = data?.items.map((each) => ({ id: each.eval_id, at: each.evaluated_at, status: each.status, reason: each.reason, runs: each.runs }));
  return (
    <span ref={ref}>
      <Marks items={items ?? []} isKnown={data !== undefined} />
    </span>
  );
}
