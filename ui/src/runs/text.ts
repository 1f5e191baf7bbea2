// A run in a few words.
import { count } from "../parts/format";
import type { Run } from "./useRun";

export const progressOf = (run: Run) => (run.tasks_total === 0 ? 0 : (run.tasks_succeeded + run.tasks_failed + run.tasks_skipped + run.tasks_cancelled) / run.tasks_total);

export function tasksText(run: Run): string {
  const parts = [`${count(run.tasks_succeeded)} of ${count(run.tasks_total)}`];
  if (run.tasks_failed > 0) parts.push(`${count(run.tasks_failed)} failed`);
  if (run.tasks_skipped > 0) parts.push(`${count(run.tasks_skipped)} skipped`);
  return parts.join(", ");
}

export function partitionsText(run: Run): string {
  const { partitions } = run;
  if (partitions == null) return "";
  const parts = [...(partitions.ranges ?? []), ...(partitions.keys ?? [])];
  if (partitions.latest === true) parts.push("latest");
  if (partitions.missing === true) parts.push("missing");
  return parts.slice(0, 3).join(", ") + (parts.length > 3 ? ` and ${String(parts.length - 3)} more` : "");
}
