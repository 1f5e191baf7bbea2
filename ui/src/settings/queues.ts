import type { Schemas } from "../api/client";

export interface QueueLoad {
  name: string;
  workers: number;
  slots: number;
  running: number;
}

/** How much room there is in every queue that a worker serves; a worker of several has its slots in each of them. */
export function queuesOf(workers: readonly Schemas["Worker"][]): QueueLoad[] {
  const found = new Map<string, QueueLoad>();
  for (const worker of workers) {
    if (worker.state !== "ACTIVE") continue;
    for (const name of worker.queues) {
      const load = found.get(name) ?? { name, workers: 0, slots: 0, running: 0 };
      found.set(name, { name, workers: load.workers + 1, slots: load.slots + worker.slots, running: load.running + worker.running });
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
