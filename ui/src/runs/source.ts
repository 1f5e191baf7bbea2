import type { Run } from "./useRun";

/** What asked for a run, in words and with a place to go. */
export function sourceOf(run: Run): { text: string; href?: string } {
  const source = run.source as Record<string, unknown> & { type?: string };
  const text = (name: string) => (typeof source[name] === "string" ? source[name] : undefined);
  switch (source.type) {
    case "schedule": {
      const name = text("schedule") ?? text("schedule_name") ?? text("name");
      return name === undefined ? { text: "schedule" } : { text: `schedule ${name}`, href: `/automation/schedules/${encodeURIComponent(name)}` };
    }
    case "retry": {
      const of = text("of_run_id") ?? text("run_id") ?? text("of");
      return of === undefined ? { text: "retry" } : { text: `retry of ${of.slice(0, 12)}`, href: `/runs/${of}` };
    }
    case undefined:
      return { text: "–" };
    default:
      return { text: source.type };
  }
}
