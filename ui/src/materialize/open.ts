// Whether the materialize dialog is open, and with what.
import { useSyncExternalStore } from "react";
import type { Schemas } from "../api/client";

export interface MaterializeRequest {
  selection: string;
  keys?: readonly string[];
  ranges?: readonly string[];
  /** What a run had asked for, in place of keys and ranges. */
  partitions?: Schemas["PartitionsBody"] | null | undefined;
  config?: Record<string, unknown> | undefined;
  labels?: Record<string, string> | undefined;
  priority?: number;
  /** Whether a backfill is wanted rather than a run. */
  asBackfill?: boolean;
}

let current: MaterializeRequest | undefined;
const listeners = new Set<() => void>();

export const materializeStore = {
  open(request: MaterializeRequest) {
    current = request;
    for (const listener of listeners) listener();
  },
  close() {
    current = undefined;
    for (const listener of listeners) listener();
  },
};

export const useMaterialize = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
