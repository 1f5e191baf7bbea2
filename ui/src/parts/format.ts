// Times, durations and numbers as people read them.

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** "4 min ago", "in 2 h". */
export function relative(at: string | number, now: number): string {
  const time = typeof at === "number" ? at : Date.parse(at);
  const ms = now - time;
  if (Math.abs(ms) < 9500) return ms >= -500 ? "just now" : "now";
  return ms >= 0 ? `${coarse(ms)} ago` : `in ${coarse(-ms)}`;
}

/** About how long something is: `8 min`. */
export function coarse(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [unit, name] = UNITS.find(([length]) => seconds >= length) ?? [1, "s"];
  return `${String(Math.floor(seconds / unit))} ${name}`;
}

/** `1m 04s`, `320ms`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < 1000) return `${String(Math.round(ms))}ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${String(seconds)}s`;
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${String(minutes)}m ${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${String(hours)}h ${two(minutes % 60)}m`;
  return `${String(Math.floor(hours / 24))}d ${two(hours % 24)}h`;
}

/** A length that somebody has chosen: `2 min`, `1 h 30 min`, `26 h`, `7 d`. */
export function chosen(ms: number): string {
  if (ms < 1000) return `${String(ms)} ms`;
  let rest = Math.round(ms / 1000);
  const units = rest < 172_800 ? UNITS.slice(1) : UNITS;
  const parts = [...units, [1, "s"] as const].flatMap(([length, name]) => {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    return whole === 0 ? [] : [`${count(whole)} ${name}`];
  });
  return parts.slice(0, 2).join(" ");
}

export function between(from: string | undefined, to: string | undefined, now: number): string {
  if (from === undefined) return "–";
  return duration((to === undefined ? now : Date.parse(to)) - Date.parse(from));
}

const grouped = new Intl.NumberFormat("en");
/** 1,234,567. */
export const count = (value: number) => grouped.format(value);

const measured = new Intl.NumberFormat("en", { maximumSignificantDigits: 9 });
/** A number that somebody has measured: 17,208.2. */
export const figure = (value: number) => (Number.isInteger(value) ? count(value) : measured.format(value));

/** "3 tasks", "1 task". */
export const plural = (value: number, word: string, many = `${word}s`) => `${count(value)} ${value === 1 ? word : many}`;

export function bytes(value: number): string {
  if (value < 1000) return `${String(value)} B`;
  const unit = Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** unit).toPrecision(3)} ${["B", "kB", "MB", "GB", "TB"][unit] ?? ""}`;
}

const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
/** `$1,012.30`, `$0.0042`: cents, and of less than one the two digits that matter. */
export function money(microUsd: number): string {
  const dollars = microUsd / 1_000_000;
  return `$${dollars === 0 || dollars >= 0.01 ? cents.format(dollars) : dollars.toPrecision(2)}`;
}

const exact = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** The exact time in the viewer's zone and in UTC. */
export const exactly = (at: string) => `${exact.format(new Date(at))} ${zone}${zone === "UTC" ? "" : `\n${at.replace("T", " ").replace("Z", "")} UTC`}`;

/** `raw.flights` of `raw/flights`. */
export const dotted = (key: string) => key.replace("/", ".");
/** `raw/flights` of `raw.flights`. */
export const slashed = (key: string) => key.replace(".", "/");
export const assetHref = (key: string) => `/assets/${key.split("/").map(encodeURIComponent).join("/")}`;
/** The data of an asset, or of one partition of it. */
export const dataHref = (key: string, partition?: string | null) => `${assetHref(key)}?tab=data${partition == null || partition === "" ? "" : `&partition=${encodeURIComponent(partition)}`}`;
export const runHref = (id: string) => `/runs/${id}`;
export const shortRun = (id: string) => id.slice(0, 12);
