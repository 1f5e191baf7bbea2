// Dimensions of partitions as a manifest has them, and the texts that name what is chosen of each.

interface Span {
  start?: string;
  end?: string;
}

export interface Partitioning {
  kind: string;
  span?: Span;
  keys?: string[];
  name?: string;
  dims?: Record<string, Partitioning>;
}

export interface Dimension {
  /** Empty if it is the only one. */
  name: string;
  kind: string;
  isTime: boolean;
  /** Its values, if the code lists them. */
  keys: string[];
}

const TIME = new Set(["hourly", "daily", "weekly", "monthly", "cron"]);

export function dimensionsOf(partitioning: unknown): Dimension[] {
  const found = partitioning as Partitioning | null | undefined;
  if (found == null) return [];
  const of = (name: string, one: Partitioning): Dimension => ({ name, kind: one.kind, isTime: TIME.has(one.kind), keys: one.keys ?? [] });
  return found.kind === "multi" ? Object.entries(found.dims ?? {}).map(([name, one]) => of(name, one)) : [of("", found)];
}

/** What is chosen of the dimensions: a range of the one of time, values of the others. None of a dimension means all of it. */
export interface Picked {
  from: string;
  to: string;
  values: Record<string, readonly string[]>;
}

/** Lines that name what is chosen: one for every combination of values. */
export function textOf(dimensions: readonly Dimension[], picked: Picked): string {
  const time = dimensions.find((each) => each.isTime);
  const others = dimensions.filter((each) => each !== time && (picked.values[each.name] ?? []).length > 0);
  const isSpan = time !== undefined && picked.from !== "";
  const to = picked.to === "" ? picked.from : picked.to;
  if (dimensions.length === 1) return isSpan ? (picked.from === to ? picked.from : `${picked.from}..${to}`) : (picked.values[""] ?? []).join("\n");
  let rows: string[][] = [[]];
  for (const each of others) rows = rows.flatMap((row) => (picked.values[each.name] ?? []).map((value) => [...row, `${each.name}=${value}`]));
  const at = (row: string[], moment: string) => [...(isSpan ? [`${time.name}=${moment}`] : []), ...row].join(",");
  return rows
    .map((row) => (isSpan && picked.from !== to ? `${at(row, picked.from)}..${at(row, to)}` : at(row, picked.from)))
    .filter((line) => line !== "")
    .join("\n");
}

/** The days of a month, in weeks that begin on Monday; empty places are none. */
export function weeksOf(month: string): (string | undefined)[][] {
  const first = new Date(`${month}-01T00:00:00Z`);
  const days = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  const before = (first.getUTCDay() + 6) % 7;
  const places: (string | undefined)[] = [...Array.from({ length: before }, () => undefined), ...Array.from({ length: days }, (_, day) => `${month}-${String(day + 1).padStart(2, "0")}`)];
  while (places.length % 7 !== 0) places.push(undefined);
  return Array.from({ length: places.length / 7 }, (_, week) => places.slice(week * 7, week * 7 + 7));
}

/** A month some months away. */
export function monthBeside(month: string, by: number): string {
  const date = new Date(`${month}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return date.toISOString().slice(0, 7);
}

/** A day some days away. */
export const dayBeside = (day: string, by: number) => new Date(Date.parse(`${day}T00:00:00Z`) + by * 86_400_000).toISOString().slice(0, 10);

/** The date in a key: `2026-01-05` of `date=2026-01-05,region=eu`. */
export const dateIn = (key: string | null | undefined): string | undefined => /\d{4}-\d{2}(-\d{2})?/.exec(key ?? "")?.[0];
