// The state of an asset in one word, from what lists and the graph know of it.
import type { Schemas } from "../api/client";
import { count, dotted, plural } from "../parts/format";
import type { Tone } from "../parts/State";

export interface Known {
  asset_key: string;
  external?: boolean;
  partitions: Schemas["PartitionTotals"];
  failures: number;
  last_success_at?: string;
  last_check_passed?: boolean;
  late_since?: string;
  /** Partitions that were made and are not what they would be now. */
  stale?: number;
  active?: Schemas["AssetActivity"];
}

/** Those that were never made have a state of their own. */
function madeAndStale(totals: Schemas["StaleTotals"] | null | undefined): { stale?: number } {
  const stale = (totals?.total ?? 0) - (totals?.never_made ?? 0) - (totals?.expired ?? 0);
  return stale > 0 ? { stale } : {};
}

export const knownOf = (asset: Schemas["Asset"]): Known => ({
  asset_key: asset.asset_key,
  external: asset.external,
  partitions: asset.partitions,
  failures: asset.health?.consecutive_failures ?? 0,
  ...(asset.health?.last_success_at == null ? {} : { last_success_at: asset.health.last_success_at }),
  ...(asset.health?.last_check_passed == null ? {} : { last_check_passed: asset.health.last_check_passed }),
  ...(asset.late_since == null ? {} : { late_since: asset.late_since }),
  ...madeAndStale(asset.stale),
  ...(asset.active == null ? {} : { active: asset.active }),
});

export const knownOfNode = (node: Schemas["GraphNode"]): Known => ({
  asset_key: node.asset_key,
  external: node.external ?? false,
  partitions: node.partitions,
  failures: node.failures ?? 0,
  ...(node.last_success_at == null ? {} : { last_success_at: node.last_success_at }),
  ...(node.last_check_passed == null ? {} : { last_check_passed: node.last_check_passed }),
  ...(node.late_since == null ? {} : { late_since: node.late_since }),
  ...madeAndStale(node.stale),
  ...(node.active == null ? {} : { active: node.active }),
});

/** Tone, word and reason of an asset's state; `quarantined` are the assets with data that waits for review. */
export function statusOf(asset: Known, quarantined?: ReadonlySet<string>): { tone: Tone; word: string; why: string } {
  const { partitions, active } = asset;
  const name = dotted(asset.asset_key);
  if (active !== undefined && active.running > 0) return { tone: "running", word: "Running", why: `${plural(active.running, "task")} of ${name} running` };
  if (active !== undefined) return { tone: "queued", word: "Waiting", why: `${plural(active.waiting, "task")} of ${name} waiting` };
  if (asset.external === true) return { tone: "skipped", word: "External", why: `${name} is made outside of Servo` };
  if (quarantined?.has(asset.asset_key) === true) return { tone: "blocked", word: "Quarantined", why: `data of ${name} waits for review` };
  const failed = partitions.last_attempt_failed + partitions.never_succeeded;
  if (partitions.total > 1 && failed > 0) return { tone: "failed", word: `${plural(failed, "partition")} failed`, why: `${count(partitions.materialized)} of ${count(partitions.total)} are made` };
  if (asset.failures > 0 || failed > 0) return { tone: "failed", word: "Failed", why: asset.failures > 0 ? `${plural(asset.failures, "task")} failed since the last success` : "the last attempt failed" };
  if (asset.last_check_passed === false) return { tone: "blocked", word: "Checks failed", why: "not all checks passed when they last ran" };
  if (asset.late_since !== undefined) return { tone: "stale", word: "Late", why: "older than its freshness allows" };
  if (asset.stale !== undefined) return { tone: "stale", word: partitions.total > 1 ? `${plural(asset.stale, "partition")} stale` : "Stale", why: "made from something that has changed since, or by other code" };
  if (partitions.materialized === 0 && partitions.expired > 0) return { tone: "missing", word: "Expired", why: `what was made of ${name} is older than it is kept` };
  if (partitions.materialized === 0) return { tone: "missing", word: "Never made", why: `nothing of ${name} was ever materialized` };
  if (partitions.materialized < partitions.total) return { tone: "succeeded", word: "Partly made", why: partitions.expired > 0 ? `${plural(partitions.expired, "partition")} expired` : `${plural(partitions.total - partitions.materialized, "partition")} never made` };
  return { tone: "succeeded", word: "Materialized", why: "everything is made" };
}
