// A month of partitions with their states: a press chooses a day, a second one everything between.
import { useQuery } from "@tanstack/react-query";
import { useRef, useState, type KeyboardEvent } from "react";
import type { Schemas } from "../api/client";
import { summaryQuery } from "../api/queries";
import { bucketText } from "../assets/bucketText";
import { dateIn, dayBeside, monthBeside, weeksOf } from "./dimensions";

type Bucket = Schemas["PartitionBucket"];

const DAYS = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];
const named = new Intl.DateTimeFormat("en", { month: "long", year: "numeric", timeZone: "UTC" });
const spoken = new Intl.DateTimeFormat("en", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const SAID: Record<string, string> = { failed: "some failed", stale: "some stale", made: "all made", partly: "some made", never: "never made", unknown: "" };

interface Properties {
  asset: string;
  /** Partitions in a day. */
  perDay: 1 | 24;
  first: string;
  last: string;
  from: string;
  to: string;
  onChange: (from: string, to: string) => void;
}

/** How a day fares: the worst of its partitions. */
export function dayState(buckets: readonly Bucket[]): "failed" | "stale" | "made" | "partly" | "never" {
  const sum = (of: (bucket: Bucket) => number | undefined) => buckets.reduce((all, bucket) => all + (of(bucket) ?? 0), 0);
  if (sum((bucket) => bucket.last_attempt_failed) + sum((bucket) => bucket.never_succeeded) > 0) return "failed";
  const made = sum((bucket) => bucket.materialized);
  if (made === 0) return "never";
  if (sum((bucket) => bucket.stale) > 0) return "stale";
  return made < sum((bucket) => bucket.partitions) ? "partly" : "made";
}

export function Calendar({ asset, perDay, first, last, from, to, onChange }: Properties) {
  const [low, high] = [dateIn(first) ?? first, dateIn(last) ?? last];
  const [month, setMonth] = useState((to === "" ? high : to).slice(0, 7));
  const [begun, setBegun] = useState<string | undefined>();
  const grid = useRef<HTMLTableElement>(null);
  const weeks = weeksOf(month);
  const days = weeks.flat().filter((day) => day !== undefined);
  const offset = Math.round((Date.parse(`${days[0] ?? month}T00:00:00Z`) - Date.parse(`${low}T00:00:00Z`)) / DAY_MS);
  const shown = days.length + Math.min(0, offset);
  // Of several dimensions a range of days has a bucket for each value of another.
  const most = perDay === 1 ? 600 : days.length * 4;
  const summary = useQuery({ ...summaryQuery(asset, most, Math.max(0, offset) * perDay, Math.max(1, shown) * perDay), enabled: shown > 0 && month <= high.slice(0, 7) });
  const byDay = new Map<string, Bucket[]>();
  for (const bucket of summary.isPlaceholderData ? [] : (summary.data?.buckets ?? [])) {
    const day = dateIn(bucket.first);
    if (day !== undefined) byDay.set(day, [...(byDay.get(day) ?? []), bucket]);
  }
  const isThere = (day: string) => day >= low && day <= high;
  const end = to === "" ? from : to;
  const focusable = days.find((day) => day === end && isThere(day)) ?? days.filter(isThere).at(-1);
  const choose = (day: string) => {
    if (begun === undefined) {
      setBegun(day);
      onChange(day, day);
    } else {
      setBegun(undefined);
      onChange(day < begun ? day : begun, day < begun ? begun : day);
    }
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 }[event.key];
    const at = event.target instanceof HTMLElement ? event.target.dataset["day"] : undefined;
    if (step === undefined || at === undefined) return;
    event.preventDefault();
    const next = dayBeside(at, step);
    if (!isThere(next)) return;
    if (next.slice(0, 7) !== month) setMonth(next.slice(0, 7));
    requestAnimationFrame(() => grid.current?.querySelector<HTMLElement>(`[data-day="${next}"]`)?.focus());
  };
  return (
    <div className="calendar">
      <div className="row">
        <button type="button" className="button small quiet" aria-label="The month before" disabled={month <= low.slice(0, 7)} onClick={() => { setMonth(monthBeside(month, -1)); }}>
          ‹
        </button>
        <strong className="grow" aria-live="polite">{named.format(new Date(`${month}-01T00:00:00Z`))}</strong>
        <button type="button" className="button small quiet" aria-label="The month after" disabled={month >= high.slice(0, 7)} onClick={() => { setMonth(monthBeside(month, 1)); }}>
          ›
        </button>
      </div>
      <table ref={grid} onKeyDown={move} aria-label="Days">
        <thead>
          <tr>
            {DAYS.map((day) => (
              <th key={day} scope="col">
                {day}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks.map((week, index) => (
            <tr key={index}>
              {week.map((day, place) => {
                if (day === undefined) return <td key={place} />;
                const buckets = byDay.get(day);
                const isChosen = from !== "" && day >= from.slice(0, 10) && day <= end.slice(0, 10);
                const state = buckets === undefined ? "unknown" : dayState(buckets);
                const what = buckets === undefined ? "" : buckets.length === 1 && buckets[0] !== undefined ? bucketText(buckets[0]).split(": ").at(-1) ?? state : SAID[state];
                return (
                  <td key={place}>
                    <button type="button" data-day={day} data-state={state} tabIndex={day === focusable ? 0 : -1} aria-pressed={isChosen} aria-label={`${spoken.format(new Date(`${day}T00:00:00Z`))}${what === "" ? "" : `, ${what}`}`} title={what === "" ? day : `${day}: ${what}`} disabled={!isThere(day)} onClick={() => { choose(day); }}>
                      {Number(day.slice(8))}
                    </button>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <p className="muted">{begun === undefined ? "A press chooses a day, a second one all between." : `From ${begun}: press the last day.`}</p>
    </div>
  );
}
