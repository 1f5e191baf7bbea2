// Cells that the page of a backfill derives from its chunks.
import { describe, expect, test } from "vitest";
import { blocksOf, keysOf, MOST_CELLS, stepOf, unplannedOf, type Chunk } from "../src/backfills/chunks";
import { partitionOf } from "../src/parts/partitionText";

/** A chunk as the server sends it: its partitions are ranges. */
const chunk = (index: number, ranges: string[], state: string, more: Partial<Chunk> = {}): Chunk => ({
  backfill_id: "bf_a",
  chunk_id: `bf_a:${String(index)}`,
  chunk_index: index,
  run_key: `backfill:bf_a:chunk:${String(index)}`,
  run_id: `run_${String(index)}`,
  asset_key: "raw/a",
  planned_at: "2026-01-01T00:00:00Z",
  partition_keys: ranges,
  partitions: 10,
  completed_partitions: 0,
  failed_partitions: 0,
  skipped_partitions: 0,
  cancelled_partitions: 0,
  running_partitions: 0,
  state,
  ...more,
});
const statesOf = (of: readonly { state: string }[]) => of.map((cell) => cell.state[0]).join("");

describe("chunks of a backfill", () => {
  test("a range is its partitions, both ends included, as far as that is known", () => {
    expect(keysOf("2026-02-27..2026-03-02")).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
    expect(keysOf("2026-01-01T22:00:00Z..2026-01-02T01:00:00Z")).toEqual(["2026-01-01T22:00", "2026-01-01T23:00", "2026-01-02T00:00", "2026-01-02T01:00"]);
    expect(keysOf("2025-11..2026-01")).toEqual(["2025-11", "2025-12", "2026-01"]);
    expect(keysOf("eu")).toEqual(["eu"]);
    expect(keysOf("a..f")).toBeUndefined();
  });

  test("ten days of which one failed are ten cells, and the one that failed is in its place", () => {
    const failed = chunk(0, ["2026-01-01..2026-01-10"], "FAILED", { completed_partitions: 9, failed_partitions: 1, failed_tasks: ["raw/a[date=d:2026-01-04]:materialize"] });
    const [block] = blocksOf([failed]);
    expect(block?.cells.map((cell) => cell.text)).toContain("2026-01-04: failed");
    expect(statesOf(block?.cells ?? [])).toBe("mmmfmmmmmm");
    expect(block?.text).toBe("Chunk 1, 10 partitions (2026-01-01..2026-01-10): 9 made, 1 failed");
  });

  test("partitions of several assets are counted by state, and what failed is named", () => {
    const mixed = chunk(3, ["2026-01-01..2026-01-05"], "FAILED", { completed_partitions: 8, failed_partitions: 1, skipped_partitions: 1, failed_tasks: ["raw/a[date=d:2026-01-04]:materialize", "raw/b[date=d:2026-01-04]:materialize"] });
    expect(statesOf(blocksOf([mixed])[0]?.cells ?? [])).toBe("mmmmmmmmfs");
    const one = chunk(3, ["2026-01-01..2026-01-05"], "FAILED", { completed_partitions: 9, failed_partitions: 1, failed_tasks: ["raw/b[date=d:2026-01-04]:materialize"] });
    expect(blocksOf([one])[0]?.cells.at(-1)?.text).toBe("raw.b[2026-01-04]: failed");
  });

  test("a chunk at work has a cell for each of its tasks, one that waits is waiting, one that was stopped is cancelled", () => {
    const days = ["2026-01-01..2026-01-10"];
    const states = ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED", "RUNNING", "DISPATCHED", "RETRY_WAIT", "READY", "BLOCKED", "SKIPPED"];
    const tasks = states.map((state, index) => ({ task_key: `raw/a[date=d:2026-01-${String(index + 1).padStart(2, "0")}]:materialize`, state }));
    const atWork = chunk(0, days, "RUNNING", { completed_partitions: 3, failed_partitions: 1, skipped_partitions: 1, running_partitions: 1, tasks });
    const [block] = blocksOf([atWork]);
    expect(statesOf(block?.cells ?? [])).toBe("mmfmrwwwws");
    expect(block?.cells[4]?.text).toBe("raw.a[2026-01-05]: running");
    expect(block?.text).toContain("3 made, 1 failed, 1 skipped, 1 running, 4 waiting");
    // Where a cell is several partitions, or the server lists no tasks, counts say it.
    expect(statesOf(blocksOf([{ ...atWork, tasks: [] }])[0]?.cells ?? [])).toBe("mmmfsrwwww");
    expect(statesOf(blocksOf([chunk(0, days, "RUNNING")])[0]?.cells ?? [])).toBe("wwwwwwwwww");
    expect(statesOf(blocksOf([chunk(0, days, "PLANNED")])[0]?.cells ?? [])).toBe("wwwwwwwwww");
    expect(statesOf(blocksOf([chunk(0, days, "CANCELLED", { completed_partitions: 4, cancelled_partitions: 6 })])[0]?.cells ?? [])).toBe("mmmmcccccc");
  });

  test("blocks are in the order of chunks, and of many partitions a cell is several, but one failure is never lost", () => {
    const many = Array.from({ length: 10 }, (_, index) => chunk(9 - index, ["2020-01-01..2022-09-26"], "SUCCEEDED", { partitions: 1000, completed_partitions: index === 4 ? 999 : 1000, failed_partitions: index === 4 ? 1 : 0 }));
    expect(stepOf(many)).toBe(5);
    const blocks = blocksOf(many);
    expect(blocks.map((block) => block.chunk.chunk_index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(blocks.flatMap((block) => block.cells).filter((cell) => cell.state === "failed")).toHaveLength(1);
    expect(blocks.flatMap((block) => block.cells).length).toBeLessThanOrEqual(MOST_CELLS + blocks.length);
  });

  test("what no chunk has is counted, also if earlier chunks are not known", () => {
    const of = (more: object) => ({ total_partitions: 100, pending_partitions: 70, planned_chunks: 3, ...more }) as Parameters<typeof unplannedOf>[0];
    const done = { completed_partitions: 10 };
    const all = [chunk(2, [], "RUNNING"), chunk(1, [], "SUCCEEDED", done), chunk(0, [], "SUCCEEDED", done)];
    expect(unplannedOf(of({}), all)).toBe(70);
    expect(unplannedOf(of({ planned_chunks: 30, pending_partitions: 50 }), all)).toBe(40);
  });

  test("the partition of a task is read as people write it", () => {
    expect(partitionOf("raw/a[date=d:2026-01-05]:materialize")).toBe("2026-01-05");
    expect(partitionOf("raw/a[date=d:2026-01-05,region=s:ZXU]:materialize")).toBe("2026-01-05 eu");
    expect(partitionOf("raw/a[hour=t:2026-01-05T03:00:00.000000Z]:materialize")).toBe("2026-01-05T03:00");
    expect(partitionOf("raw/a:materialize")).toBeUndefined();
  });
});
