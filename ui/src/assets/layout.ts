// Layers from left to right: an asset is right of everything that it reads. Orders within layers are those with few
// crossings, by barycentres; equal graphs give equal positions, and one more asset moves few of the others (ADR-136).

export const NODE = { width: 200, height: 52, gapX: 72, gapY: 20 } as const;

export interface LayoutRequest {
  id: number;
  count: number;
  /** Pairs of positions, from what is read to what reads it. */
  edges: readonly (readonly [number, number])[];
}

export interface Layout {
  x: number[];
  y: number[];
  width: number;
  height: number;
}

const SWEEPS = 6;
const STEP_X = NODE.width + NODE.gapX;
const STEP_Y = NODE.height + NODE.gapY;
// Assets without any edge stand below the others, about as wide as high; one more of them moves the others at few numbers.
/** How many of so many stand side by side. */
const columnsOf = (lonely: number) => 2 ** Math.max(1, Math.ceil(Math.log2(Math.sqrt(lonely / 2))));

export function layOut(count: number, edges: readonly (readonly [number, number])[]): Layout {
  const reads: number[][] = Array.from({ length: count }, () => []);
  const readBy: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    readBy[from]?.push(to);
    reads[to]?.push(from);
  }
  const layer = layersOf(count, reads, readBy);
  const isLonely = (node: number) => reads[node]?.length === 0 && readBy[node]?.length === 0;
  const layers: number[][] = [];
  const lonely: number[] = [];
  for (let node = 0; node < count; node++) {
    if (isLonely(node)) lonely.push(node);
    else (layers[layer[node] ?? 0] ??= []).push(node);
  }
  for (let index = 0; index < layers.length; index++) layers[index] ??= [];
  const place = new Float64Array(count);
  for (const nodes of layers) nodes.forEach((node, index) => (place[node] = index));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    const order = forwards ? layers : [...layers].reverse();
    for (const nodes of order) {
      const key = new Map(nodes.map((node) => [node, mean((forwards ? reads : readBy)[node] ?? [], place, place[node] ?? 0)]));
      nodes.sort((a, b) => (key.get(a) ?? 0) - (key.get(b) ?? 0) || a - b);
      nodes.forEach((node, index) => (place[node] = index));
    }
  }
  const y = new Float64Array(count);
  for (const nodes of layers) nodes.forEach((node, index) => (y[node] = (index - nodes.length / 2) * STEP_Y));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forwards = sweep % 2 === 0;
    for (const nodes of forwards ? layers : [...layers].reverse()) settle(nodes, (forwards ? reads : readBy), y);
  }
  let top = Infinity;
  let bottom = -Infinity;
  for (const nodes of layers)
    for (const node of nodes) {
      top = Math.min(top, y[node] ?? 0);
      bottom = Math.max(bottom, (y[node] ?? 0) + NODE.height);
    }
  if (!Number.isFinite(top)) [top, bottom] = [0, -NODE.gapY * 2];
  const x = new Float64Array(count);
  for (let node = 0; node < count; node++) {
    x[node] = (layer[node] ?? 0) * STEP_X;
    y[node] = (y[node] ?? 0) - top;
  }
  bottom -= top;
  const columns = Math.max(layers.length, columnsOf(lonely.length));
  lonely.forEach((node, index) => {
    x[node] = (index % columns) * STEP_X;
    y[node] = bottom + NODE.gapY * 2 + Math.floor(index / columns) * STEP_Y;
  });
  let width = 0;
  let height = 0;
  for (let node = 0; node < count; node++) {
    width = Math.max(width, (x[node] ?? 0) + NODE.width);
    height = Math.max(height, (y[node] ?? 0) + NODE.height);
  }
  return { x: [...x], y: [...y], width, height };
}

/** The longest way from a source; sources stand just left of what reads them first. */
function layersOf(count: number, reads: number[][], readBy: number[][]): Int32Array {
  const layer = new Int32Array(count);
  const open = Int32Array.from(reads, (each) => each.length);
  const queue: number[] = [];
  for (let node = 0; node < count; node++) if (open[node] === 0) queue.push(node);
  for (let head = 0; head < queue.length; head++) {
    const node = queue[head] ?? 0;
    for (const next of readBy[node] ?? []) {
      layer[next] = Math.max(layer[next] ?? 0, (layer[node] ?? 0) + 1);
      open[next] = (open[next] ?? 0) - 1;
      if (open[next] === 0) queue.push(next);
    }
  }
  for (let node = 0; node < count; node++) {
    const after = readBy[node] ?? [];
    if (reads[node]?.length === 0 && after.length > 0) layer[node] = Math.min(...after.map((next) => layer[next] ?? 0)) - 1;
  }
  return layer;
}

function mean(nodes: readonly number[], of: Float64Array, otherwise: number): number {
  if (nodes.length === 0) return otherwise;
  let sum = 0;
  for (const node of nodes) sum += of[node] ?? 0;
  return sum / nodes.length;
}

/** Moves the nodes of a layer towards their neighbours, in their order and without overlap. */
function settle(nodes: readonly number[], neighbours: number[][], y: Float64Array): void {
  const wanted = nodes.map((node) => mean(neighbours[node] ?? [], y, y[node] ?? 0));
  let shift = 0;
  let before = -Infinity;
  nodes.forEach((node, index) => {
    const at = Math.max(wanted[index] ?? 0, before + STEP_Y);
    y[node] = at;
    before = at;
    shift += (wanted[index] ?? 0) - at;
  });
  shift /= Math.max(nodes.length, 1);
  for (const node of nodes) y[node] = (y[node] ?? 0) + shift;
}
