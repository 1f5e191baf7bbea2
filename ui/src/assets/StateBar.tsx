import type { Schemas } from "../api/client";
import { count } from "../parts/format";

/** Shares of partitions by state, in words on hover and for readers. */
export function StateBar({ totals }: { totals: Schemas["PartitionTotals"] }) {
  const { total, materialized, last_attempt_failed: failing, never_succeeded: never } = totals;
  const share = (value: number) => ({ width: total === 0 ? "0" : `${String(Math.max((value / total) * 100, value > 0 ? 3 : 0))}%` });
  const text = `${count(materialized)} of ${count(total)} made${failing + never > 0 ? `, ${count(failing + never)} failed` : ""}`;
  return (
    <span className="bar" role="img" aria-label={text} title={text}>
      <i className="fill-succeeded" style={share(materialized)} />
      <i className="fill-failed" style={share(failing)} />
      <i className="fill-never" style={share(never)} />
    </span>
  );
}
