// Partitions of an asset that somebody names in the palette: found in two bounded questions, however many there are.
import type { Schemas } from "../api/client";

type Summary = Schemas["PartitionSummary"];
type Bucket = Schemas["PartitionBucket"];

/** Ranges that are asked for at once. */
export const RANGES = 500;
const MOST = 8;

/** An asset and a part of a key: `raw.flights 2026-01`, `raw.flights[2026-01-05]`. */
export function namedPartition(text: string): { asset: string; partition: string } | undefined {
  const found = /^([\w-]+[./][\w-]+)(?:\s*\[\s*([^\]]*?)\s*\]?|\s+(\S.*?))\s*$/.exec(text);
  return found?.[1] === undefined ? undefined : { asset: found[1].replace("/", "."), partition: found[2] ?? found[3] ?? "" };
}

const isWithin = (bucket: Bucket, text: string) => {
  const last = bucket.last ?? bucket.first;
  if (bucket.first.includes(text) || last.includes(text)) return true;
  return bucket.first.slice(0, text.length) <= text && text <= last.slice(0, text.length);
};

/** Where to look closer for a text; none if every partition is there already. */
export function closer(summary: Summary, text: string): { from: number; count: number } | undefined {
  if (summary.step <= 1 || text === "") return undefined;
  const rows = Math.max(1, summary.rows.length);
  const at = summary.buckets.findIndex((bucket) => isWithin(bucket, text));
  return at < 0 ? undefined : { from: summary.from + Math.floor(at / rows) * summary.step, count: Math.min(summary.step, RANGES) };
}

/** Partitions that have the text in their key, the newest first. */
export const matching = (summary: Summary, text: string): Bucket[] =>
  summary.buckets
    .filter((bucket) => bucket.last == null && bucket.first.includes(text))
    .reverse()
    .slice(0, MOST);
