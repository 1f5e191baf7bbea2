import { useSyncExternalStore } from "react";
import { coarse, exactly, relative } from "./format";

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time now, to the second. */
export const useNow = () => useSyncExternalStore(subscribe, () => now);

export function Ago({ at }: { at: string | undefined }) {
  const current = useNow();
  if (at === undefined) return <span className="muted">–</span>;
  return (
    <time dateTime={at} title={exactly(at)} className="nowrap">
      {relative(at, current)}
    </time>
  );
}

/** About how long it is since then. */
export function Since({ at }: { at: string }) {
  const current = useNow();
  return (
    <time dateTime={at} title={exactly(at)} className="nowrap">
      {coarse(Math.max(0, current - Date.parse(at)))}
    </time>
  );
}
