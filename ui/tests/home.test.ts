// The last day on home: what is known of it, and what is said where something is not.
import { describe, expect, test } from "vitest";
import { CELL_MS, CELLS, dayOf, fillOf, groupOfRun, SEVERAL } from "../src/home/day";
import type { Run } from "../src/runs/useRun";

type Known = Parameters<typeof dayOf>[0];

const start = Date.parse("2026-01-01T00:00:00Z");
const at = (cell: number) => new Date(start + cell * CELL_MS + 60_000).toISOString();
const run = (id: string, cell: number, state: string, selection = "raw.a") => ({ run_id: id, created_at: at(cell), state, selection }) as Run;
const asset = (asset_key: string, group: string | undefined, health: object = {}) => ({ asset_key, group, health }) as unknown as Known["assets"][number];
const known = (more: Partial<Known>): Known => ({ start, newest: [], isCut: false, failed: [], isFailedCut: false, assets: [asset("raw/a", "ingest"), asset("raw/b", "ingest"), asset("out/c", undefined)], ...more });

describe("the last day by group", () => {
  test("a run is of the group of what it makes, if that is one", () => {
    const groups = new Map([["raw/a", "ingest"], ["raw/b", "ingest"], ["out/c", "out"]]);
    expect(["raw.a", "raw.a, raw.b", "raw.*", "group:core", "out/c", "raw.a or out.c", "+out.c", "*", undefined, "new.asset"].map((selection) => groupOfRun(selection, groups))).toEqual(["ingest", "ingest", "ingest", "core", "out", SEVERAL, SEVERAL, SEVERAL, SEVERAL, "new"]);
  });

  test("a cell is as bad as the worst of its runs, and quiet hours are known to be quiet", () => {
    const { rows, knownSince } = dayOf(known({ newest: [run("r1", 10, "SUCCEEDED"), run("r2", 10, "FAILED"), run("r3", 47, "RUNNING")] }));
    expect(knownSince).toBe(start);
    expect(rows.map((row) => row.group)).toEqual(["ingest"]);
    expect([10, 47, 0].map((cell) => fillOf(rows[0]?.cells[cell] ?? (undefined as never)))).toEqual(["fill-failed", "fill-running", ""]);
    expect(rows[0]?.cells).toHaveLength(CELLS);
  });

  test("on a busy day what is older than the newest runs is not blank: failures are there, and the rest is said to be unknown", () => {
    const newest = Array.from({ length: 100 }, (_, index) => run(`n${String(index)}`, 46, "SUCCEEDED"));
    const { rows, knownSince } = dayOf(known({ newest, isCut: true, failed: [run("f", 3, "FAILED"), run("n1", 46, "SUCCEEDED")], assets: [asset("raw/a", "ingest", { last_success_at: at(20) })] }));
    expect(knownSince).toBe(Date.parse(at(46)));
    const cells = rows[0]?.cells ?? [];
    expect([3, 20, 30, 46].map((cell) => fillOf(cells[cell] ?? (undefined as never)))).toEqual(["fill-failed", "fill-succeeded", "is-unknown", "fill-succeeded"]);
    expect(cells[46]?.runs).toBe(100);
    expect([cells[30]?.isKnown, cells[47]?.isKnown]).toEqual([false, true]);
  });

  test("a failure that no known run tells of is one of its asset", () => {
    const failed = Array.from({ length: 100 }, (_, index) => run(`f${String(index)}`, 40, "FAILED"));
    const { rows } = dayOf(known({ newest: failed, isCut: true, failed, isFailedCut: true, assets: [asset("raw/a", "ingest"), asset("out/c", undefined, { last_failure_at: at(5) })] }));
    expect(fillOf(rows.find((row) => row.group === "out")?.cells[5] ?? (undefined as never))).toBe("fill-failed");
  });

  test("the groups with failures come first, and those that do not fit are counted", () => {
    const newest = Array.from({ length: 12 }, (_, index) => run(`r${String(index)}`, 5, index === 11 ? "FAILED" : "SUCCEEDED", `g${String(index)}.a`));
    const { rows, more } = dayOf(known({ newest }));
    expect([rows[0]?.group, rows.length, more]).toEqual(["g11", 8, 4]);
  });
});
