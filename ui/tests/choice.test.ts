// Requests of the dialog: partitions from the picker, configuration, labels, and how a backfill goes.
import { describe, expect, test } from "vitest";
import { dayState } from "../src/materialize/Calendar";
import { backfillBodyOf, bodyOf, choiceOf, labelsOf, NO_OPTIONS, numberProblem, thresholdProblem } from "../src/materialize/choice";
import { configOf } from "../src/materialize/ConfigForm";
import { dayBeside, dimensionsOf, monthBeside, textOf, weeksOf } from "../src/materialize/dimensions";
import { estimateText } from "../src/materialize/MaterializeDialog";
import { optionsProblem } from "../src/materialize/OptionsForm";

describe("the choice of partitions", () => {
  test("each way to choose is what the server calls it", () => {
    expect(bodyOf("a", { kind: "failed", text: "ignored" })).toEqual({ selection: "a", partitions: { failed: true } });
    expect(bodyOf("a", { kind: "stale", text: "" })).toEqual({ selection: "a", partitions: { stale: true } });
    expect(bodyOf("a", { kind: "these", text: "2026-01-01..2026-01-07", only: "missing" })).toEqual({ selection: "a", partitions: { keys: [], ranges: ["2026-01-01..2026-01-07"], missing: true } });
    expect(bodyOf("a", { kind: "none", text: "" })).toEqual({ selection: "a" });
  });

  test("what a run had asked for is what the dialog begins with", () => {
    expect(choiceOf({ latest: true })).toEqual({ kind: "latest", text: "" });
    expect(choiceOf({ ranges: ["a..b"], keys: ["c"], failed: true })).toEqual({ kind: "these", text: "a..b\nc", only: "failed" });
    expect(choiceOf(undefined)).toEqual({ kind: "none", text: "" });
  });

  test("of several dimensions every combination of values is a line, and what is not chosen is all", () => {
    const dimensions = dimensionsOf({ kind: "multi", dims: { date: { kind: "daily", span: {} }, region: { kind: "static", keys: ["eu", "us"] } } });
    expect(dimensions.map((each) => [each.name, each.isTime, each.keys.length])).toEqual([["date", true, 0], ["region", false, 2]]);
    expect(textOf(dimensions, { from: "2026-01-01", to: "2026-01-03", values: { region: ["eu", "us"] } })).toBe("date=2026-01-01,region=eu..date=2026-01-03,region=eu\ndate=2026-01-01,region=us..date=2026-01-03,region=us");
    expect(textOf(dimensions, { from: "2026-01-01", to: "", values: {} })).toBe("date=2026-01-01");
    expect(textOf(dimensions, { from: "", to: "", values: { region: ["eu"] } })).toBe("region=eu");
    expect(textOf(dimensionsOf({ kind: "daily" }), { from: "2026-01-01", to: "2026-01-03", values: {} })).toBe("2026-01-01..2026-01-03");
    expect(textOf(dimensionsOf({ kind: "static", keys: ["eu"] }), { from: "", to: "", values: { "": ["eu", "us"] } })).toBe("eu\nus");
    expect(dimensionsOf(null)).toEqual([]);
  });

  test("a calendar has every day of a month once, in weeks from Monday", () => {
    const weeks = weeksOf("2024-02");
    expect(weeks.every((week) => week.length === 7)).toBe(true);
    expect(weeks.flat().filter(Boolean)).toHaveLength(29);
    expect(weeks[0]?.indexOf("2024-02-01")).toBe(3);
    expect([monthBeside("2024-01", -1), monthBeside("2024-12", 1), dayBeside("2024-03-01", -1)]).toEqual(["2023-12", "2025-01", "2024-02-29"]);
  });

  test("a day is as bad as the worst of its partitions", () => {
    const hour = (more: object) => ({ first: "x", partitions: 1, ...more });
    expect(dayState([hour({ materialized: 1 }), hour({ never_succeeded: 1 })])).toBe("failed");
    expect(dayState([hour({ materialized: 1 }), hour({})])).toBe("partly");
    expect(dayState([hour({ materialized: 1, stale: 1 })])).toBe("stale");
    expect(dayState([hour({})])).toBe("never");
    expect(dayState([hour({ materialized: 1 })])).toBe("made");
  });
});

describe("how it is asked for", () => {
  test("labels, priority and configuration go with runs; chunks and thresholds with backfills alone", () => {
    const options = { ...NO_OPTIONS, config: { "a.b:n": 1 }, labels: "reason=late data\nteam=ops", priority: "5", chunk_size: "30", max_concurrent_runs: "4", failure_threshold: "10 %", stop_on_failure: true };
    const common = { selection: "a.b", partitions: { missing: true }, config: { "a.b:n": 1 }, labels: { reason: "late data", team: "ops" }, priority: 5 };
    expect(bodyOf("a.b", { kind: "missing", text: "" }, options)).toEqual(common);
    expect(backfillBodyOf("a.b", { kind: "missing", text: "" }, options)).toEqual({ ...common, chunk_size: 30, max_concurrent_runs: 4, failure_threshold: "10%", stop_on_failure: true });
    expect(backfillBodyOf("a.b", { kind: "missing", text: "" })).toEqual({ selection: "a.b", partitions: { missing: true } });
  });

  test("what is wrong is told before it is asked for", () => {
    expect(labelsOf("nonsense").problem).toContain("is no label");
    expect([numberProblem("0", 1), numberProblem("1.5", 1), numberProblem("", 1), numberProblem("12", 1)]).toEqual(["At least 1", "A whole number", undefined, undefined]);
    expect([thresholdProblem("10%"), thresholdProblem("25"), thresholdProblem("much")]).toEqual([undefined, undefined, expect.any(String)]);
    expect(optionsProblem({ ...NO_OPTIONS, chunk_size: "0" }, true)).toBeDefined();
    expect(optionsProblem({ ...NO_OPTIONS, chunk_size: "0" }, false)).toBeUndefined();
  });

  test("the configuration of an earlier run is kept, also of assets that have no field in the form", () => {
    const fields = [{ asset: "a.b", name: "factor", type: "int" }];
    expect(configOf(fields, {}, { "a.b:factor": 7, "other.c:x": "y" })).toEqual({ "a.b:factor": 7, "other.c:x": "y" });
    expect(configOf(fields, { "a.b:factor": "9" }, { factor: 7 })).toEqual({ "a.b:factor": 9 });
    expect(configOf(fields, { "a.b:factor": "" }, { factor: 7 })).toEqual({});
  });

  test("how long a backfill takes is told by what was before, or that nobody knows", () => {
    expect(estimateText({ estimated_seconds: 720, estimated_work_seconds: 3600 })).toBe("About 12m 00s, by what its tasks took before; 1h 00m of work in all.");
    expect(estimateText({ estimated_seconds: 720, estimated_work_seconds: 3600, estimated_cost_micro_usd: 1_234_000 })).toBe("About 12m 00s, by what its tasks took before; 1h 00m of work in all, about $1.23.");
    expect(estimateText({})).toContain("not known");
  });
});
