import { useEffect, useRef, useState } from "react";

const FLASH_MS = 1300;

/** Rows whose version has changed since they were shown: the ids of those that differ. Rows that are new have not changed. */
export function changedIds(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): string[] {
  return [...now].filter(([id, version]) => before.has(id) && before.get(id) !== version).map(([id]) => id);
}

const NONE: ReadonlySet<string> = new Set();

/** Ids of rows that have just changed, each for as long as it flashes. */
export function useFlashes<T>(items: readonly T[], id: (item: T) => string, version: ((item: T) => string) | undefined): ReadonlySet<string> {
  const known = useRef<ReadonlyMap<string, string>>(new Map());
  const timers = useRef(new Set<ReturnType<typeof setTimeout>>());
  const [flashing, setFlashing] = useState(NONE);
  useEffect(() => {
    if (version === undefined) return;
    const now = new Map(items.map((item) => [id(item), version(item)]));
    const ids = changedIds(known.current, now);
    known.current = now;
    if (ids.length === 0) return;
    setFlashing((before) => new Set([...before, ...ids]));
    const timer = setTimeout(() => {
      timers.current.delete(timer);
      setFlashing((before) => new Set([...before].filter((each) => !ids.includes(each))));
    }, FLASH_MS);
    timers.current.add(timer);
    // Callers give the same functions for the name of a row and its change at every drawing.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [items]);
  useEffect(() => {
    const all = timers.current;
    return () => {
      for (const timer of all) clearTimeout(timer);
    };
  }, []);
  return flashing;
}
