// Positions of a graph, worked out in a worker and kept by what the graph is.
import { useEffect, useReducer } from "react";
import type { Layout, LayoutRequest } from "./layout";

const known = new Map<string, Layout>();
const MOST_KNOWN = 20;
let worker: Worker | undefined;
let next = 0;

export function useLayout(names: readonly string[], edges: readonly (readonly [number, number])[]): Layout | undefined {
  const key = `${names.join("\n")}\n\n${edges.map((edge) => edge.join(">")).join(" ")}`;
  const [, render] = useReducer((count: number) => count + 1, 0);
  const layout = known.get(key);
  const count = names.length;
  useEffect(() => {
    if (known.has(key) || count === 0) return;
    worker ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const id = next++;
    const done = (event: MessageEvent<{ id: number; layout: Layout }>) => {
      if (event.data.id !== id) return;
      if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value ?? "");
      known.set(key, event.data.layout);
      render();
    };
    worker.addEventListener("message", done);
    const request: LayoutRequest = { id, count, edges };
    worker.postMessage(request);
    return () => worker?.removeEventListener("message", done);
  }, [key, count, edges]);
  return layout;
}
