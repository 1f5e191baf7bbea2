// Partitions as people write them, from keys as the server stores them.

/** A part of a canonical key. */
function valueOf(text: string): string {
  if (/^[di]:/.test(text)) return text.slice(2);
  if (text.startsWith("s:")) {
    try {
      return new TextDecoder().decode(Uint8Array.from(atob(text.slice(2).replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0)));
    } catch {
      return text;
    }
  }
  if (text.startsWith("t:")) return text.slice(2).replace(/(:00)?\.000000Z$/, "");
  return text;
}

/** `2026-01-05 eu` of `date=d:2026-01-05,region=s:ZXU`: of several dimensions their values. */
export const partitionText = (key: string): string =>
  key
    .split(",")
    .map((each) => valueOf(each.slice(each.indexOf("=") + 1)))
    .join(" ");

/** The partition of a task, `2026-01-05` of `raw/a[date=d:2026-01-05]:materialize`. */
export function partitionOf(task: string): string | undefined {
  const key = /\[([^\]]*)\]/.exec(task)?.[1];
  return key === undefined ? undefined : partitionText(key);
}
