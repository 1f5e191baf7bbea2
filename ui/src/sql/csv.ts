import type { Schemas } from "../api/client";

/** A value as people read it. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value as string | number | boolean);
}

const field = (text: string) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A result as comma-separated values, with the names of columns. */
export function csvOf(result: Pick<Schemas["SqlResult"], "columns" | "rows">): string {
  const lines = [result.columns.map((column) => field(column.name)), ...result.rows.map((row) => row.map((value) => field(shown(value))))];
  return lines.map((line) => `${line.join(",")}\n`).join("");
}
