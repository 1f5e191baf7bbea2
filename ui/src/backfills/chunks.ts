// States of the partitions of a chunk, one by one as far as the server says it, and otherwise by counts.
import type { Schemas } from "../api/client";
import { count, plural } from "../parts/format";
import { partitionOf } from "../parts/partitionText";

export type Chunk = Schemas["BackfillChunk"];
export type CellState = "made" | "failed" | "skipped" | "cancelled" | "running" | "waiting";

export interface Cell {
  state: CellState;
  text: string;
}

export interface Block {
  chunk: Chunk;
  cells: Cell[];
  text: string;
}

/** Cells that are drawn of the chunks that are shown; of more partitions, a cell is several of a chunk. */
export const MOST_CELLS = 2000;
/** Keys of one range that are written out. */
const MOST_KEYS = 2000;

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const HOUR = /^\d{4}-\d{2}-\d{2}T\d{2}:00(:00Z)?$/;
const MONTH = /^\d{4}-\d{2}$/;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Keys from the first to the last of a range as the server writes it; none if they are not known from its ends. */
export function keysOf(range: string): string[] | undefined {
  const [from, to] = range.split("..");
  if (from === undefined || from === "") return undefined;
  if (to === undefined) return [from];
  const spell = (text: string): number => Date.parse(MONTH.test(text) ? `${text}-01` : HOUR.test(text) ? `${text.slice(0, 16)}:00Z` : text);
  const keys: string[] = [];
  if (DAY.test(from) && DAY.test(to)) for (let at = spell(from); at <= spell(to) && keys.length <= MOST_KEYS; at += DAY_MS) keys.push(new Date(at).toISOString().slice(0, 10));
  else if (HOUR.test(from) && HOUR.test(to)) for (let at = spell(from); at <= spell(to) && keys.length <= MOST_KEYS; at += HOUR_MS) keys.push(new Date(at).toISOString().slice(0, 16));
  else if (MONTH.test(from) && MONTH.test(to))
    for (let at = new Date(spell(from)); at.getTime() <= spell(to) && keys.length <= MOST_KEYS; at.setUTCMonth(at.getUTCMonth() + 1)) keys.push(at.toISOString().slice(0, 7));
  return keys.length === 0 || keys.length > MOST_KEYS ? undefined : keys;
}

/** What a task makes, in a few words. */
const taskText = (task: string) => {
  const partition = partitionOf(task);
  const asset = (/^[^[:]+/.exec(task)?.[0] ?? task).replace("/", ".");
  return partition === undefined ? asset : `${asset}[${partition}]`;
};

/** What states of tasks are of the partitions that they make; what is not here waits. */
const OF_TASKS: Readonly<Record<string, CellState>> = { SUCCEEDED: "made", FAILED: "failed", SKIPPED: "skipped", CANCELLED: "cancelled", RUNNING: "running" };

/** How many partitions of a chunk have each state. */
export function countsOf(chunk: Chunk): [CellState, number][] {
  const { completed_partitions: made, failed_partitions: failed, skipped_partitions: skipped, cancelled_partitions: cancelled, running_partitions: running = 0 } = chunk;
  const rest = Math.max(0, chunk.partitions - made - failed - skipped - cancelled - running);
  const isOver = chunk.state !== "RUNNING" && chunk.state !== "PLANNED";
  const counts: [CellState, number][] = [
    ["made", made],
    ["failed", failed],
    ["skipped", skipped],
    ["cancelled", cancelled + (isOver ? rest : 0)],
    ["running", running],
    ["waiting", isOver ? 0 : rest],
  ];
  return counts.filter(([, number]) => number > 0);
}

/** What a chunk is, in a line. */
export const chunkText = (chunk: Chunk) =>
  `Chunk ${count(chunk.chunk_index + 1)}, ${plural(chunk.partitions, "partition")}${chunk.partition_keys.length === 0 ? "" : ` (${chunk.partition_keys.slice(0, 2).join(", ")}${chunk.partition_keys.length > 2 ? ", …" : ""})`}: ${countsOf(chunk)
    .map(([state, number]) => `${count(number)} ${state}`)
    .join(", ")}`;

/** Cells of a chunk at work, a task for each. */
function cellsOfTasks(tasks: NonNullable<Chunk["tasks"]>): Cell[] {
  return tasks.map(({ task_key: key, state: of }) => {
    const state = OF_TASKS[of] ?? "waiting";
    return { state, text: `${taskText(key)}: ${state}` };
  });
}

function cellsOf(chunk: Chunk, step: number): Cell[] {
  const atWork = chunk.tasks ?? [];
  if (step === 1 && atWork.length === chunk.partitions) return cellsOfTasks(atWork);
  const counts = countsOf(chunk);
  const bad = counts.filter(([state]) => state === "failed" || state === "skipped" || state === "cancelled");
  const only = bad.length === 1 ? bad[0] : undefined;
  const tasks = chunk.failed_tasks ?? [];
  // Which partitions did not succeed is known if all of them fared alike.
  const areNamed = only !== undefined && tasks.length === only[1];
  const known = chunk.partition_keys.map(keysOf);
  const keys = known.every((each) => each !== undefined) ? known.flat() : [];
  if (step === 1 && keys.length === chunk.partitions && (bad.length === 0 || areNamed)) {
    const missed = new Set(tasks.map(partitionOf));
    const rest = counts.find(([state]) => state !== only?.[0])?.[0] ?? "made";
    const cells = keys.map((key): Cell => {
      const state = only !== undefined && missed.has(key) ? only[0] : rest;
      return { state, text: `${key}: ${state}` };
    });
    // Where the names do not match the keys, counts are right all the same.
    if (only === undefined || cells.filter((cell) => cell.state === only[0]).length === only[1]) return cells;
  }
  return counts.flatMap(([state, number]) =>
    Array.from({ length: Math.ceil(number / step) }, (_, index): Cell => {
      const task = areNamed && state === only[0] && step === 1 ? tasks[index] : undefined;
      return { state, text: task === undefined ? `${count(number)} ${state}` : `${taskText(task)}: ${state}` };
    }),
  );
}

/** How many partitions of a chunk a cell is, for all cells to be drawn. */
export const stepOf = (chunks: readonly Chunk[]) => Math.max(1, Math.ceil(chunks.reduce((sum, chunk) => sum + chunk.partitions, 0) / MOST_CELLS));

/** The chunks in the order in which they are made, each with cells for its partitions. What failed has a cell, however many a cell is. */
export function blocksOf(chunks: readonly Chunk[], step = stepOf(chunks)): Block[] {
  return [...chunks].sort((a, b) => a.chunk_index - b.chunk_index).map((chunk) => ({ chunk, cells: cellsOf(chunk, step), text: chunkText(chunk) }));
}

/** Partitions that no chunk has yet. */
export function unplannedOf(backfill: Schemas["Backfill"], chunks: readonly Chunk[]): number {
  const sum = (of: readonly Chunk[]) => of.reduce((all, chunk) => all + chunk.partitions, 0);
  if (chunks.length >= backfill.planned_chunks) return Math.max(0, backfill.total_partitions - sum(chunks));
  // Chunks at work are the newest, which are known first.
  return Math.max(0, backfill.pending_partitions - sum(chunks.filter((chunk) => chunk.state === "RUNNING" || chunk.state === "PLANNED")));
}
