// What was measured, beside what was promised: a table for people and a file for programs.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

interface Figure {
  name: string;
  value: number;
  unit: string;
  better: "lower" | "higher";
  target: number;
}

const figures: Figure[] = [];
const out = resolve(import.meta.dirname, "../../target/bench/ui.json");

/** Records a figure that must be at most, or with "higher" at least, its target. */
export function add(name: string, value: number, unit: string, target: number, better: "lower" | "higher" = "lower"): void {
  figures.push({ name, value: Math.round(value * 10) / 10, unit, better, target });
}

export const isReached = ({ value, better, target }: Pick<Figure, "value" | "better" | "target">) => (better === "lower" ? value <= target : value >= target);

export function report(about: Record<string, unknown>): void {
  const width = Math.max(...figures.map((figure) => figure.name.length));
  const lines = figures.map((figure) => `${figure.name.padEnd(width)}  ${`${String(figure.value)} ${figure.unit}`.padStart(12)}  ${figure.better === "lower" ? "≤" : "≥"} ${String(figure.target)} ${figure.unit}  ${isReached(figure) ? "reached" : "MISSED"}`);
  process.stdout.write(`\nweb UI\n${lines.join("\n")}\n`);
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, `${JSON.stringify({ ...about, figures }, undefined, 2)}\n`);
  process.stdout.write(`\nwritten to ${out}\n`);
}

/** The value below which that share of them lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (values: readonly number[]) => quantile(values, 0.5);
