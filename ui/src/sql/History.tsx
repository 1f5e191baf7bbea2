// Queries of before, kept in this browser alone.
import { useSyncExternalStore } from "react";
import { count, duration } from "../parts/format";
import { Ago } from "../parts/Time";

interface Entry {
  query: string;
  at: number;
  rows: number;
  ms: number;
}

const KEY = "servo-sql-history";
const MOST = 30;
const listeners = new Set<() => void>();

function read(): readonly Entry[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? (kept as Entry[]).filter((entry) => typeof entry.query === "string") : [];
  } catch {
    return [];
  }
}

let entries = read();

function keep(next: readonly Entry[]): void {
  entries = next;
  localStorage.setItem(KEY, JSON.stringify(next));
  for (const listener of listeners) listener();
}

/** The newest first, each query once. */
export function remember(entry: Entry): void {
  keep([entry, ...entries.filter((other) => other.query !== entry.query)].slice(0, MOST));
}

export function History({ onChoose }: { onChoose: (query: string) => void }) {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => entries,
  );
  if (shown.length === 0) return null;
  return (
    <section className="panel" aria-label="History">
      <header>
        <h2>History</h2>
        <span className="muted">in this browser</span>
        <span className="grow" />
        <button
          type="button"
          className="button small quiet"
          onClick={() => {
            keep([]);
          }}
        >
          Clear
        </button>
      </header>
      <ul className="attention">
        {shown.slice(0, 10).map((entry) => (
          <li key={entry.query}>
            <button
              type="button"
              className="what mono ellipsis plain"
              title={entry.query}
              onClick={() => {
                onChoose(entry.query);
              }}
            >
              {entry.query.replace(/\s+/g, " ")}
            </button>
            <span className="muted nowrap hide-small">
              {count(entry.rows)} rows in {duration(entry.ms)}
            </span>
            <span className="muted nowrap">
              <Ago at={new Date(entry.at).toISOString()} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
