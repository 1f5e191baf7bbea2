// Whether the materialize dialog is open, and with what.
import { useSyncExternalStore } from "react";

export interface MaterializeRequest {
  selection: string;
  keys?: readonly string[];
  ranges?: readonly string[];
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
