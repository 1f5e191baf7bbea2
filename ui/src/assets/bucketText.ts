import type { Schemas } from "../api/client";
import { count } from "../parts/format";

/** What a range of partitions is, and how it fares. */
export function bucketText(bucket: Schemas["PartitionBucket"]): string {
  const which = bucket.last == null ? bucket.first : `${bucket.first} … ${bucket.last}`;
  const failed = (bucket.last_attempt_failed ?? 0) + (bucket.never_succeeded ?? 0);
  const made = bucket.materialized ?? 0;
  const stale = bucket.stale ?? 0;
  const expired = bucket.expired ?? 0;
  const parts = bucket.partitions === 1 ? [stale > 0 ? "materialized, stale" : made > 0 ? "materialized" : failed > 0 ? "failed" : expired > 0 ? "expired" : "never made"] : [`${count(made)} of ${count(bucket.partitions)} made`, ...(stale > 0 ? [`${count(stale)} stale`] : []), ...(failed > 0 ? [`${count(failed)} failed`] : []), ...(expired > 0 ? [`${count(expired)} expired`] : [])];
  return `${which}: ${parts.join(", ")}`;
}
