import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { schedulesQuery } from "../api/queries";
import type { Run } from "./useRun";

/** Names of schedules by their ids. */
export function useScheduleNames(): ReadonlyMap<string, string> {
  const { data } = useQuery(schedulesQuery);
  return useMemo(() => new Map(data?.items.map((schedule) => [schedule.schedule_id, schedule.name])), [data]);
}

/** What asked for a run, in words and with a place to go. */
export function sourceOf(run: Run, schedules?: ReadonlyMap<string, string>): { text: string; href?: string } {
  const { source } = run;
  const text = (name: string) => (typeof source[name] === "string" ? source[name] : undefined);
  const type = text("type");
  switch (type) {
    case "schedule": {
      const name = schedules?.get(text("id") ?? "");
      return name === undefined ? { text: "schedule" } : { text: `schedule ${name}`, href: `/automation/schedules/${encodeURIComponent(name)}` };
    }
    case "retry": {
      const of = text("id");
      return of === undefined ? { text: "retry" } : { text: `retry of ${of.slice(0, 12)}`, href: `/runs/${of}` };
    }
    case undefined:
      return { text: "–" };
    default:
      return { text: type };
  }
}
