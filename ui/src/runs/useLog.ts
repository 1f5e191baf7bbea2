// The lines of one attempt: the newest while they are written, a part at a time otherwise.
import { useCallback, useEffect, useRef, useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { route } from "../api/workspace";

export type Line = Schemas["LogLine"];
/** A line as it came: those of a live log are read when they are looked at, which few of them are. */
export type Entry = Line | string;

/** Lines of a live log that stay in the page; the server has all of them. */
export const KEPT = 5000;
const PART = 1000;
const LARGE_PART = 10_000;
const MERGE_MS = 200;

export const lineOf = (entry: Entry): Line => (typeof entry === "string" ? (JSON.parse(entry) as Line) : entry);

/** The newest lines of some, and how many there were before them. */
export interface Tail {
  entries: readonly Entry[];
  /** Lines before the first of them. */
  dropped: number;
}

export function appended(tail: Tail, fresh: readonly Entry[], kept = KEPT): Tail {
  const over = Math.max(0, tail.entries.length + fresh.length - kept);
  const entries = over >= tail.entries.length ? fresh.slice(over - tail.entries.length) : [...tail.entries.slice(over), ...fresh];
  return { entries, dropped: tail.dropped + over };
}

const NOTHING: Tail = { entries: [], dropped: 0 };

export interface AttemptPath {
  run_id: string;
  task_id: string;
  attempt: number;
}

const read = (path: AttemptPath, offset: number, limit: number) => answer(api.GET("/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs", { params: { path, query: { offset, limit } } }));

/** Every line that there is now, a part after another. */
export async function* partsOf(path: AttemptPath, from = 0): AsyncGenerator<{ lines: Line[]; next: number }> {
  for (let offset = from; ; ) {
    const { lines, next_offset } = await read(path, offset, LARGE_PART);
    if (lines.length > 0) yield { lines, next: next_offset };
    if (next_offset === offset) return;
    offset = next_offset;
  }
}

/** `path` stays what it is: another attempt is another log. `follows` says whether the newest line is looked at. */
export function useLog(path: AttemptPath, isLive: boolean, follows: { readonly current: boolean }) {
  const [shown, setShown] = useState(NOTHING);
  /** Lines that were written since, while earlier ones were looked at. */
  const [behind, setBehind] = useState(0);
  const [next, setNext] = useState<number | undefined>();
  const [error, setError] = useState<unknown>();
  const [isLoaded, setIsLoaded] = useState(false);
  const [isFollowed, setIsFollowed] = useState(isLive);
  const isLoading = useRef(false);
  const address = useRef(path);

  // What is followed is followed to its end: the last lines stay when the attempt is over.
  useEffect(() => {
    if (isLive) setIsFollowed(true);
  }, [isLive]);

  const load = useCallback(async (parts: () => AsyncIterable<{ lines: readonly Line[]; next: number | undefined }>, before: Tail, kept: number) => {
    if (isLoading.current) return;
    isLoading.current = true;
    try {
      let tail = before;
      let after: number | undefined;
      for await (const part of parts()) {
        tail = appended(tail, part.lines, kept);
        after = part.next;
      }
      setShown(tail);
      setNext(after);
      setIsLoaded(true);
      setError(undefined);
    } catch (failed) {
      setError(failed);
    } finally {
      isLoading.current = false;
    }
  }, []);
  const part = useCallback(async function* (offset: number) {
    const found = await read(address.current, offset, PART);
    yield { lines: found.lines, next: found.ended && found.lines.length < PART ? undefined : found.next_offset };
  }, []);
  const begin = useCallback(() => void load(() => part(0), NOTHING, Infinity), [load, part]);

  useEffect(() => {
    if (!isFollowed) begin();
  }, [isFollowed, begin]);

  useEffect(() => {
    if (!isFollowed) return;
    let tail = NOTHING;
    let seen = NOTHING;
    let fresh: string[] = [];
    let merging: ReturnType<typeof setTimeout> | undefined;
    const merge = () => {
      merging = undefined;
      tail = appended(tail, fresh);
      fresh = [];
      setIsLoaded(true);
      // Lines that are looked at do not move because earlier ones go.
      if (follows.current || tail.dropped === seen.dropped) {
        seen = tail;
        setShown(tail);
      }
      setBehind(tail.dropped + tail.entries.length - seen.dropped - seen.entries.length);
    };
    const { run_id, task_id, attempt } = address.current;
    const source = new EventSource(route(`/api/v1/runs/${run_id}/tasks/${task_id}/attempts/${String(attempt)}/logs/stream`));
    source.addEventListener("log", (event: MessageEvent<string>) => {
      fresh.push(event.data);
      merging ??= setTimeout(merge, MERGE_MS);
    });
    source.addEventListener("end", () => {
      source.close();
    });
    return () => {
      source.close();
      clearTimeout(merging);
      setBehind(0);
    };
  }, [isFollowed, follows]);

  return {
    ...shown,
    behind,
    isLoaded,
    error,
    isFollowed,
    /** Asks for what comes next, if the end was not reached. */
    more: isFollowed || next === undefined ? undefined : () => void load(() => part(next), shown, Infinity),
    /** Shows the last lines, however many there are before them. */
    toEnd: isFollowed || next === undefined ? undefined : () => void load(() => withoutNext(partsOf(address.current, next)), shown, KEPT),
    toStart: () => {
      if (isFollowed) setIsFollowed(false);
      else begin();
    },
    follow: () => {
      setIsFollowed(true);
    },
  };
}

async function* withoutNext(parts: AsyncIterable<{ lines: readonly Line[] }>) {
  for await (const { lines } of parts) yield { lines, next: undefined };
}
