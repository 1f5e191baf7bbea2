// What pages decide on their own: layouts, texts, and the requests that dialogs make.
import { expect, test } from "vitest";
import { eventOf } from "../src/api/client";
import { policyText } from "../src/assets/freshness";
import { cardsOf, rowsOf, selectionOf } from "../src/assets/grouping";
import { layOut, NODE } from "../src/assets/layout";
import { statusOf } from "../src/assets/status";
import { lastTickText } from "../src/automation/SchedulePage";
import { parsed } from "../src/automation/payload";
import { causeHref } from "../src/assets/WhyStale";
import { valueOf } from "../src/materialize/ConfigForm";
import { closer, matching, namedPartition } from "../src/frame/partitions";
import { bodyOf, NO_OPTIONS } from "../src/materialize/choice";
import { bytes, chosen, duration, figure, money, relative } from "../src/parts/format";
import { changedIds } from "../src/parts/useFlashes";
import { plain, spansOf } from "../src/runs/ansi";
import { userLine } from "../src/runs/Failures";
import { countsText, readable } from "../src/settings/Diff";
import { axesOf } from "../src/sql/Chart";
import { csvOf } from "../src/sql/csv";
import { widthsOf } from "../src/sql/ResultTable";

test("an asset stands right of everything that it reads, and no two overlap", () => {
  const edges: [number, number][] = [];
  for (let node = 1; node < 400; node++) for (const of of [node >> 1, (node * 7) % node]) edges.push([of, node]);
  const { x, y } = layOut(400, edges);
  for (const [from, to] of edges) expect(x[to] ?? 0).toBeGreaterThan(x[from] ?? 0);
  const places = new Set<string>();
  const columns = new Map<number, number[]>();
  for (let node = 0; node < 400; node++) {
    places.add(`${String(x[node])} ${String(y[node])}`);
    columns.set(x[node] ?? 0, [...(columns.get(x[node] ?? 0) ?? []), y[node] ?? 0]);
  }
  expect(places.size).toBe(400);
  for (const column of columns.values()) {
    column.sort((a, b) => a - b);
    for (let index = 1; index < column.length; index++) expect((column[index] ?? 0) - (column[index - 1] ?? 0)).toBeGreaterThanOrEqual(NODE.height);
  }
});

test("equal graphs have equal layouts, and assets without edges stand apart", () => {
  const edges: [number, number][] = [[0, 1], [1, 2]];
  expect(layOut(5, edges)).toEqual(layOut(5, edges));
  const { y } = layOut(5, edges);
  expect(Math.min(y[3] ?? 0, y[4] ?? 0)).toBeGreaterThan(Math.max(y[0] ?? 0, y[1] ?? 0, y[2] ?? 0));
});

const totals = { total: 1, materialized: 1, last_attempt_failed: 0, never_succeeded: 0, expired: 0 };

test("a closed group is one card with the worst of its states and the edges of all of it", () => {
  const node = (asset_key: string, failures: number) => ({ asset_key, failures, partitions: totals });
  const graph = { nodes: [node("raw/a", 0), node("raw/b", 2), node("out/c", 0)], edges: [[0, 2], [1, 2]], has_more: false };
  const closed = cardsOf(graph, (group) => group === "raw", new Set());
  expect(closed.cards.map((card) => [card.id, card.tone, card.members?.length])).toEqual([["group:raw", "failed", 2], ["out/c", "succeeded", undefined]]);
  expect(closed.edges).toEqual([[0, 1]]);
  expect(cardsOf(graph, () => false, new Set()).edges).toHaveLength(2);
});

test("the state of an asset is the one that matters most", () => {
  const asset = { asset_key: "raw/a", partitions: totals, failures: 0 };
  expect(statusOf(asset).tone).toBe("succeeded");
  expect(statusOf({ ...asset, failures: 1 }).tone).toBe("failed");
  expect(statusOf({ ...asset, failures: 1, active: { running: 1, waiting: 0, run_id: "run_x" } }).tone).toBe("running");
  expect(statusOf({ ...asset, failures: 1 }, new Set(["raw/a"])).tone).toBe("blocked");
  expect(statusOf({ ...asset, late_since: "2026-01-01T00:00:00Z" }).tone).toBe("stale");
  expect(statusOf({ ...asset, partitions: { ...totals, materialized: 0 } }).word).toBe("Never made");
});

test("a traceback leads to the user's own line", () => {
  const text = 'Traceback (most recent call last):\n  File "pipeline.py", line 9, in summary\n    return 1 / zero\n           ~~^~~~~~\nZeroDivisionError: division by zero';
  expect(userLine(text)).toEqual({ place: "pipeline.py:9 in summary", source: "return 1 / zero" });
  expect(userLine("killed by signal 9")).toBeUndefined();
});

test("what is typed into the dialog is what is asked for", () => {
  expect(bodyOf("raw.*", { kind: "these", text: "2026-01-01..2026-01-07\n2026-02-01" })).toEqual({ selection: "raw.*", partitions: { keys: ["2026-02-01"], ranges: ["2026-01-01..2026-01-07"] } });
  expect(bodyOf("raw.*", { kind: "latest", text: "" })).toEqual({ selection: "raw.*", partitions: { latest: true } });
  expect(bodyOf("raw.*", { kind: "none", text: "ignored" }, { ...NO_OPTIONS, config: { "raw.a:n": 1 } })).toEqual({ selection: "raw.*", config: { "raw.a:n": 1 } });
  const field = (type: string) => ({ asset: "raw.a", name: "n", type });
  expect([valueOf(field("int"), "3"), valueOf(field("str"), "3"), valueOf(field("bool"), "true"), valueOf(field("list[int]"), "[1]"), valueOf(field("int"), "")]).toEqual([3, "3", true, [1], undefined]);
});

test("times, sizes and lines are shown as people read them", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect([relative("2026-01-01T11:56:00Z", now), relative("2026-01-01T14:00:00Z", now), relative("2026-01-01T11:59:58Z", now)]).toEqual(["4 min ago", "in 2 h", "just now"]);
  expect([duration(64_000), duration(320), duration(4200), duration(3_720_000)]).toEqual(["1m 04s", "320ms", "4.2s", "1h 02m"]);
  expect([chosen(30_000), chosen(120_000), chosen(5_400_000), chosen(93_600_000), chosen(604_800_000), chosen(500)]).toEqual(["30 s", "2 min", "1 h 30 min", "26 h", "7 d", "500 ms"]);
  expect([figure(17208.2), figure(1_234_567), figure(0.000123456), figure(1 / 3)]).toEqual(["17,208.2", "1,234,567", "0.000123456", "0.333333333"]);
  expect([bytes(999), bytes(12_345)]).toEqual(["999 B", "12.3 kB"]);
  expect([money(0), money(4_200), money(12_300_000), money(1_012_300_000)]).toEqual(["$0.00", "$0.0042", "$12.30", "$1,012.30"]);
  expect(plain("\u001b[31mred\u001b[0m and \u001b]0;title\u0007plain")).toBe("red and plain");
});

test("a result is written as comma-separated values that other programs read", () => {
  const columns = ["a", "b,c"].map((name) => ({ name, type: "VARCHAR", number: false, time: false }));
  expect(csvOf({ columns, rows: [["x", 'say "hi"'], [null, { k: [1] }] as never, [1.5, true] as never] as never })).toBe('a,"b,c"\nx,"say ""hi"""\n,"{""k"":[1]}"\n1.5,true\n');
});

test("a chart begins with time or text along the bottom and a number above", () => {
  const [text, number, time] = [
    { number: false, time: false },
    { number: true, time: false },
    { number: false, time: true },
  ];
  expect(axesOf([number, text, number])).toEqual({ x: 1, y: 0 });
  expect(axesOf([text, time, number])).toEqual({ x: 1, y: 2 });
  expect(axesOf([number, number])).toEqual({ x: 0, y: 1 });
  expect(axesOf([text, time])).toBeUndefined();
});

test("columns are as wide as what is in them, within limits", () => {
  const columns = ["id", "long"].map((name) => ({ name, type: "VARCHAR", number: false, time: false }));
  expect(widthsOf({ columns, rows: [["1", "x".repeat(90)]] as never })).toBe("minmax(8ch, 8fr) minmax(46ch, 46fr)");
});

test("differences are counted in words, and their values are readable", () => {
  expect(countsText({ added: 0, changed: 2, moved: 1, removed: 0 })).toBe("2 changed, 1 moved");
  expect(countsText({ added: 0, changed: 0, moved: 0, removed: 0 })).toBe("nothing differs");
  expect(readable('"daily"')).toBe("daily");
  expect(readable(`"sha256:${"a".repeat(64)}"`)).toBe("sha256:aaaaaaaaaaaa…");
  expect(readable('["a","b"]')).toBe("a, b");
  expect(readable('{"team":"supply"}')).toBe('{"team":"supply"}');
  expect(readable("1…")).toBe("1…");
});

test("a message that is no JSON is told before it is sent", () => {
  expect(parsed(" ")).toEqual({});
  expect(parsed('{"a": 1}')).toEqual({ value: { a: 1 } });
  expect(parsed("{a}").problem).toContain("This is no JSON");
});

test("data that is stale has a state of its own, after failures and before what was never made", () => {
  const known = { asset_key: "a/b", partitions: { total: 3, materialized: 2, last_attempt_failed: 0, never_succeeded: 0, expired: 0 } as never, failures: 0 };
  expect(statusOf({ ...known, stale: 2 })).toMatchObject({ tone: "stale", word: "2 partitions stale" });
  expect(statusOf({ ...known, stale: 2, failures: 1 })).toMatchObject({ tone: "failed" });
  expect(statusOf(known)).toMatchObject({ tone: "succeeded", word: "Partly made" });
});

test("the cause of staleness is an asset upstream, or what changed in the code", () => {
  const cause = { asset_key: "clean/tidy", reason: "UPSTREAM_NEWER", why: "" };
  expect(causeHref({ ...cause, upstream_asset_key: "raw/source" })).toBe("/assets/raw/source?tab=history");
  expect(causeHref({ ...cause, reason: "CODE_CHANGED" })).toBe("/assets/clean/tidy?tab=definition");
});

test("the policy of freshness is said in words, an age or a deadline", () => {
  const of = (freshness: object | undefined) => policyText({ freshness });
  expect(of({ max_lag_ms: 3_600_000 })).toBe("at most 1 h old");
  expect(of({ cron: "0 9 * * *", timezone: "Europe/Amsterdam", warn_before_ms: 1_800_000 })).toBe("due by 0 9 * * * Europe/Amsterdam, warns 30 min before");
  expect(of({ max_lag_ms: 93_600_000, cron: "0 9 * * *" })).toBe("at most 26 h old at 0 9 * * *");
  expect(of(undefined)).toBeUndefined();
});

test("colours of lines are those of the theme, and what is no colour is left out", () => {
  expect(spansOf("plain")).toEqual([{ text: "plain", style: "" }]);
  expect(spansOf("\u001b[31mred\u001b[0m and \u001b[1;36mcyan\u001b[39m bold\u001b[m.")).toEqual([{ text: "red", style: "ansi-red" }, { text: " and ", style: "" }, { text: "cyan", style: "ansi-cyan ansi-bold" }, { text: " bold", style: "ansi-bold" }, { text: ".", style: "" }]);
  expect(spansOf("\u001b[38;5;196mred\u001b[38;2;10;200;20mgreen\u001b[41mstill\u001b[97mtext\u001b[2Kgone").map((span) => span.style)).toEqual(["ansi-red", "ansi-green", ""]);
  expect(spansOf("\u001b[30mblack on \u001b[47mwhite")).toEqual([{ text: "black on white", style: "" }]);
});

test("a row flashes when it changes, not when it comes", () => {
  const of = (...rows: [string, string][]) => new Map(rows);
  expect(changedIds(of(["a", "1"], ["b", "1"]), of(["a", "2"], ["b", "1"], ["c", "1"]))).toEqual(["a"]);
  expect(changedIds(of(), of(["a", "1"]))).toEqual([]);
});

test("partitions that are named are found in two questions, however many there are", () => {
  expect(namedPartition("raw.flights 2026-01")).toEqual({ asset: "raw.flights", partition: "2026-01" });
  expect(namedPartition("raw/flights[2026-01-05]")).toEqual({ asset: "raw.flights", partition: "2026-01-05" });
  expect(namedPartition("raw.flights[")).toEqual({ asset: "raw.flights", partition: "" });
  expect(namedPartition("raw.flights")).toBeUndefined();
  const summary = { rows: [""], from: 0, total: 2000, count: 2000, step: 1000, dimension: "date", buckets: [{ first: "2020-01-01", last: "2022-09-26", partitions: 1000 }, { first: "2022-09-27", last: "2025-06-22", partitions: 1000 }] };
  expect(closer(summary, "2024-02-29")).toEqual({ from: 1000, count: 500 });
  expect(closer(summary, "2021")).toEqual({ from: 0, count: 500 });
  expect(closer(summary, "1999")).toBeUndefined();
  const near = { ...summary, step: 1, buckets: ["2021-01-01", "2021-01-02", "2021-02-01"].map((first) => ({ first, partitions: 1 })) };
  expect(closer(near, "2021-01")).toBeUndefined();
  expect(matching(near, "2021-01").map((bucket) => bucket.first)).toEqual(["2021-01-02", "2021-01-01"]);
});

test("a list in the order of groups has a head before each, with how many are shown", () => {
  const asset = (asset_key: string, group?: string) => ({ asset_key, group }) as Parameters<typeof rowsOf>[0][number];
  const rows = rowsOf([asset("raw/a", "core"), asset("out/b", "core"), asset("x/c")], true);
  expect(rows.map((row) => row.asset?.asset_key ?? `${row.group} ${String(row.size)}`)).toEqual(["core 2", "raw/a", "out/b", "x 1", "x/c"]);
  expect(rows.filter((row) => row.asset === undefined).map(selectionOf)).toEqual(["group:core", "x.*"]);
  expect(rowsOf([asset("raw/a", "core")], false)).toHaveLength(1);
});

test("a change is known by the event that accepted it", () => {
  expect([eventOf({ accepted_event_id: "e1" }), eventOf({ accepted_event_id: null }), eventOf({ items: [] }), eventOf(undefined)]).toEqual(["e1", undefined, undefined, undefined]);
});

test("of a schedule that a function decides, the last call is told", () => {
  const tick = (more: object) => ({ tick_id: "t", scheduled_for: "2026-01-01T05:00:00Z", status: "TRIGGERED", ...more }) as Parameters<typeof lastTickText>[0][number];
  expect(lastTickText([])).toBe("It has not been called yet.");
  expect(lastTickText([tick({ runs: [{ run_id: "r" }] })])).toContain("it asked for 1 run.");
  expect(lastTickText([tick({ status: "FAILED", reason: "ValueError" })])).toContain("it failed: ValueError.");
});
