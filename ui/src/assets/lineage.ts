/** Everything that a card is made of, and everything that is made of it. */
export function lineageOf(start: number, edges: readonly (readonly [number, number])[]): Set<number> {
  const found = new Set([start]);
  for (const [near, far] of [
    [1, 0],
    [0, 1],
  ] as const) {
    const next = new Map<number, number[]>();
    for (const edge of edges) {
      const list = next.get(edge[near]) ?? [];
      list.push(edge[far]);
      next.set(edge[near], list);
    }
    const way = new Set([start]);
    const queue = [start];
    for (let node = queue.pop(); node !== undefined; node = queue.pop())
      for (const other of next.get(node) ?? [])
        if (!way.has(other)) {
          way.add(other);
          found.add(other);
          queue.push(other);
        }
  }
  return found;
}
