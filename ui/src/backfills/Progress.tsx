import type { Schemas } from "../api/client";
import { count, duration } from "../parts/format";

type Backfill = Schemas["Backfill"];

/** Shares of partitions that were made, failed, and are at work or to come. */
export function Progress({ backfill }: { backfill: Backfill }) {
  const { total_partitions: total, completed_partitions: made, failed_partitions: failed } = backfill;
  const rest = backfill.skipped_partitions + backfill.cancelled_partitions;
  const share = (value: number) => ({ width: total === 0 ? "0" : `${String((value / total) * 100)}%` });
  const text = `${count(made)} of ${count(total)} made${failed > 0 ? `, ${count(failed)} failed` : ""}${rest > 0 ? `, ${count(rest)} left out` : ""}`;
  return (
    <span className="bar" role="img" aria-label={text} title={text}>
      <i className="fill-succeeded" style={share(made)} />
      <i className="fill-failed" style={share(failed)} />
      <i className="fill-queued" style={share(rest)} />
    </span>
  );
}

/** How fast it goes and how long it still takes. */
export function rateOf(backfill: Backfill): string {
  if (backfill.partitions_per_second == null) return "";
  const rate = backfill.partitions_per_second;
  const text = rate >= 1 ? `${rate.toFixed(1)} a second` : `${(rate * 60).toFixed(1)} a minute`;
  return backfill.remaining_seconds == null ? text : `${text}, ${duration(backfill.remaining_seconds * 1000)} to go`;
}

export function whichOf(backfill: { partitions?: Schemas["PartitionsBody"] }): string {
  const { partitions } = backfill;
  if (partitions == null) return "";
  const parts = [...(partitions.ranges ?? []), ...(partitions.keys ?? []), ...(partitions.latest === true ? ["latest"] : []), ...(partitions.missing === true ? ["missing"] : [])];
  return parts.slice(0, 3).join(", ") + (parts.length > 3 ? ` and ${String(parts.length - 3)} more` : "");
}
