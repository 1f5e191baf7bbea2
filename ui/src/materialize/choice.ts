// Which partitions are chosen, and the request that it makes.
import type { Schemas } from "../api/client";

export type Only = "missing" | "failed" | "stale";

export interface Choice {
  kind: "none" | "latest" | Only | "these";
  /** Keys and ranges, if these are chosen. */
  text: string;
  /** Of these, only those. */
  only?: Only | undefined;
}

/** How it is asked for, beside what. What is empty is left to the server. */
export interface Options {
  config: Record<string, unknown>;
  /** `name=value`, one to a line. */
  labels: string;
  priority: string;
  chunk_size: string;
  max_concurrent_runs: string;
  failure_threshold: string;
  stop_on_failure: boolean;
}

export const NO_OPTIONS: Options = { config: {}, labels: "", priority: "", chunk_size: "", max_concurrent_runs: "", failure_threshold: "", stop_on_failure: false };

export const wordsOf = (text: string): string[] =>
  text
    .split(/[\n;]+/)
    .map((word) => word.trim())
    .filter(Boolean);

/** Labels by their names, or what is wrong with them. */
export function labelsOf(text: string): { labels: Record<string, string>; problem?: string } {
  const labels: Record<string, string> = {};
  for (const line of wordsOf(text)) {
    const at = line.indexOf("=");
    if (at < 1) return { labels: {}, problem: `“${line}” is no label: write name=value` };
    labels[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return { labels };
}

export const labelsText = (labels: Record<string, string> | null | undefined): string =>
  Object.entries(labels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** What is wrong with a number, if it is one; empty is left alone. */
export function numberProblem(text: string, least: number): string | undefined {
  if (text.trim() === "") return undefined;
  const value = Number(text);
  if (!Number.isInteger(value)) return "A whole number";
  return value < least ? `At least ${String(least)}` : undefined;
}

/** What is wrong with a threshold: `10%` or `25`. */
export const thresholdProblem = (text: string): string | undefined => (text.trim() === "" || /^\d+(\.\d+)?\s*%?$/.test(text.trim()) ? undefined : "A number such as 25, or a share such as 10%");

export function partitionsOf(choice: Choice): Schemas["PartitionsBody"] | undefined {
  switch (choice.kind) {
    case "none":
      return undefined;
    case "latest":
      return { latest: true };
    case "missing":
    case "failed":
    case "stale":
      return { [choice.kind]: true };
    case "these": {
      const words = wordsOf(choice.text);
      return { keys: words.filter((word) => !word.includes("..")), ranges: words.filter((word) => word.includes("..")), ...(choice.only === undefined ? {} : { [choice.only]: true }) };
    }
  }
}

/** What a request had chosen. */
export function choiceOf(partitions: Schemas["PartitionsBody"] | null | undefined): Choice {
  const text = [...(partitions?.ranges ?? []), ...(partitions?.keys ?? [])].join("\n");
  const only: Only | undefined = partitions?.missing === true ? "missing" : partitions?.failed === true ? "failed" : partitions?.stale === true ? "stale" : undefined;
  if (text !== "") return { kind: "these", text, only };
  return { kind: only ?? (partitions?.latest === true ? "latest" : "none"), text: "" };
}

/** What runs and backfills have in common. */
export function bodyOf(selection: string, choice: Choice, options: Options = NO_OPTIONS): Schemas["RunBody"] {
  const partitions = partitionsOf(choice);
  const { labels } = labelsOf(options.labels);
  return {
    selection,
    ...(partitions === undefined ? {} : { partitions }),
    ...(Object.keys(options.config).length === 0 ? {} : { config: options.config as never }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(options.priority.trim() === "" || numberProblem(options.priority, -2_147_483_648) !== undefined ? {} : { priority: Number(options.priority) }),
  };
}

export function backfillBodyOf(selection: string, choice: Choice, options: Options = NO_OPTIONS): Schemas["BackfillBody"] {
  const threshold = options.failure_threshold.replaceAll(/\s/g, "");
  return {
    ...bodyOf(selection, choice, options),
    ...(options.chunk_size.trim() === "" || numberProblem(options.chunk_size, 1) !== undefined ? {} : { chunk_size: Number(options.chunk_size) }),
    ...(options.max_concurrent_runs.trim() === "" || numberProblem(options.max_concurrent_runs, 1) !== undefined ? {} : { max_concurrent_runs: Number(options.max_concurrent_runs) }),
    ...(threshold === "" || thresholdProblem(threshold) !== undefined ? {} : { failure_threshold: threshold }),
    ...(options.stop_on_failure ? { stop_on_failure: true } : {}),
  };
}
