// Metadata that functions attach: what it is, and how it is said in a few words.
import { bytes, figure, plural } from "./format";
import { safeHref } from "./markdownBlocks";

export type Shown =
  | { kind: "md"; text: string }
  | { kind: "url"; href: string | undefined; url: string; text: string }
  | { kind: "table"; columns: string[]; rows: unknown[][]; total: number }
  | { kind: "image"; source: string | undefined; name: string; size: string; type: string }
  | { kind: "plain"; text: string }
  | { kind: "json"; text: string; isLong: boolean };

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const PICTURES = new Set(["image/png", "image/svg+xml"]);
const LONG = 1200;
/** JSON that is as easily read in one line. */
const SHORT = 80;

/** A value as one shows it. What is not as the SDK writes it is JSON, as everything else. */
export function shownOf(value: unknown): Shown {
  if (isObject(value)) {
    const { $servo: kind, text, url, columns, rows } = value;
    if (kind === "md" && isText(text)) return { kind: "md", text };
    if (kind === "url" && isText(url)) return { kind: "url", url, href: safeHref(url), text: isText(text) ? text : url };
    if (kind === "table" && Array.isArray(columns) && Array.isArray(rows))
      return { kind: "table", columns: columns.map(String), rows: rows.map((row) => (Array.isArray(row) ? row : [row])), total: typeof value["row_count"] === "number" ? value["row_count"] : rows.length };
    if (kind === "image") {
      const type = isText(value["media_type"]) ? value["media_type"] : "";
      const inside = value["base64"];
      const isWhole = isText(inside) && PICTURES.has(type) && /^[A-Za-z0-9+/=]*$/.test(inside);
      return { kind: "image", type, source: isWhole ? `data:${type};base64,${inside}` : undefined, name: isText(value["file"]) ? value["file"] : "", size: typeof value["byte_size"] === "number" ? bytes(value["byte_size"]) : "" };
    }
  }
  if (typeof value === "number") return { kind: "plain", text: figure(value) };
  if (value === null || typeof value === "boolean") return { kind: "plain", text: String(value) };
  if (isText(value)) return { kind: "plain", text: value };
  const line = JSON.stringify(value);
  const text = line.length <= SHORT ? line : JSON.stringify(value, null, 2);
  return { kind: "json", text, isLong: text.length > LONG };
}

const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A value in a line. */
export function lineOf(value: unknown): string {
  const shown = shownOf(value);
  switch (shown.kind) {
    case "md":
      return cut(shown.text.split("\n").find((line) => line.trim() !== "")?.replace(/[*_`#>]/g, "").trim() ?? "", 60);
    case "url":
      return shown.text;
    case "table":
      return plural(shown.total, "row");
    case "image":
      return `picture${shown.size === "" ? "" : `, ${shown.size}`}`;
    case "plain":
      return cut(shown.text, 60);
    case "json":
      return cut(JSON.stringify(value), 60);
  }
}

/** A cell of a table. */
export const cellText = (value: unknown): string => (value === null || value === undefined ? "" : isText(value) ? value : JSON.stringify(value));
