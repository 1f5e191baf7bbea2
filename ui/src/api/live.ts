// What changes on the server, told to every open page by one connection: browsers allow six to a server, and a tab that
// held one of its own would stop the seventh. A shared worker holds it; where there is none, the page does.
import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { Schemas } from "./client";
import { route } from "./workspace";

export type Connection = "connecting" | "open" | "reconnecting";
export type LiveMessage = { kind: "state"; state: Connection } | { kind: "changed"; changes: Schemas["Changes"] };

let connection: Connection = "connecting";
const listeners = new Set<() => void>();

function setConnection(next: Connection): void {
  if (connection === next) return;
  connection = next;
  for (const listener of listeners) listener();
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}

/** How long answers of a family stay before they are asked for again, however much happens. */
const PACE: Record<string, number> = { runs: 250, run: 250, assets: 600, asset: 600, graph: 600, partitions: 800, history: 2000, quarantine: 500, schedules: 500, sensors: 500, backfills: 500, settings: 250, admission: 500 };

/** Follows the changes of the workspace and asks again for what pages show. */
export function followChanges(queries: QueryClient): void {
  const waiting = new Map<string, ReturnType<typeof setTimeout>>();
  const last = new Map<string, number>();
  const touch = (family: string) => {
    if (waiting.has(family)) return;
    const pace = PACE[family] ?? 500;
    const delay = Math.max(20, (last.get(family) ?? 0) + pace - Date.now());
    waiting.set(
      family,
      setTimeout(() => {
        waiting.delete(family);
        last.set(family, Date.now());
        void queries.invalidateQueries({ queryKey: [family] });
      }, delay),
    );
  };
  const apply = (message: LiveMessage) => {
    if (message.kind === "state") {
      const wasLost = connection === "reconnecting";
      setConnection(message.state);
      if (wasLost && message.state === "open") void queries.invalidateQueries();
      // What was asked for before the stream was there may have changed since.
      else if (message.state === "open") ["history", "quarantine", "backfills", "sensors"].forEach(touch);
      return;
    }
    const { changes } = message;
    if (changes.runs.length > 0 || changes.more_runs) ["runs", "run", "admission", "backfills"].forEach(touch);
    if (changes.assets) ["assets", "asset", "graph", "partitions", "history", "quarantine", "deployment"].forEach(touch);
    if (changes.automation) ["schedules", "sensors", "conditions", "backfills", "notifications"].forEach(touch);
    if (changes.settings) ["settings", "admission", "audit"].forEach(touch);
  };
  const changes = route("/api/v1/changes");
  if (typeof SharedWorker !== "undefined") {
    const worker = new SharedWorker(new URL("./live.worker.ts", import.meta.url), { type: "module", name: changes });
    worker.port.onmessage = (event: MessageEvent<LiveMessage>) => {
      apply(event.data);
    };
    worker.port.start();
  } else {
    void import("./stream").then(({ followStream }) => followStream(changes, apply));
  }
}
