// Values that pages derive from the rows of a run and of workers.
import { describe, expect, test } from "vitest";
import { partOf, scaleOf, within } from "../src/runs/scale";
import { transitionsOf } from "../src/runs/transitions";
import type { Run, Task } from "../src/runs/useRun";
import { appended, lineOf } from "../src/runs/useLog";
import { queuesOf } from "../src/settings/queues";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const run = { run_id: "run_a", created_at: at(0), started_at: at(1), finished_at: at(11), state: "FAILED", requested_by: "user:local", tasks_total: 1, transition_reason: "tasks_failed" } as Run;
const task = {
  task_id: "t_a",
  task_key: "raw/a:materialize",
  asset_key: "raw/a",
  state: "FAILED",
  attempt: 2,
  ready_at: at(1),
  dispatched_at: at(5),
  started_at: at(6),
  finished_at: at(10),
  transition_at: at(10),
  error: { code: "USER_ERROR", message: "again", error_type: "ValueError" },
  past_attempts: [{ attempt: 1, attempt_id: "x", transition_reason: "attempt_failed", started_at: at(2), ended_at: at(4), error: { code: "USER_ERROR", message: "first", error_type: "ValueError" } }],
} as unknown as Task;

describe("events of a run", () => {
  test("every attempt begins and ends, in the order in which that happened", () => {
    expect(transitionsOf(run, [task]).map((each) => `${each.what}${each.detail === undefined ? "" : `: ${each.detail}`}`)).toEqual([
      "Asked for: by user:local",
      "The run began: 1 task planned",
      "raw.a began",
      "raw.a failed and is tried again: ValueError: first",
      "raw.a was dispatched",
      "raw.a began",
      "raw.a failed: ValueError: again",
      "The run ended: tasks_failed",
    ]);
  });

  test("a task that waits to be tried again has not begun a second time", () => {
    const waits = { ...task, state: "RETRY_WAIT", attempt: 1, started_at: at(2), finished_at: null } as unknown as Task;
    expect(transitionsOf({ ...run, finished_at: null }, [waits]).filter((each) => each.what === "raw.a began")).toHaveLength(1);
  });
});

describe("time of a run", () => {
  test("the whole run is as wide as there is room, a part of it wider", () => {
    const whole = scaleOf(run, 0);
    expect([whole.left(Date.parse(at(1))), whole.width(Date.parse(at(1)), Date.parse(at(11)))]).toEqual(["0%", "100%"]);
    const half = scaleOf(run, 0, "0.5-1");
    expect([half.offset, half.span, half.left(Date.parse(at(6)))]).toEqual([5000, 5000, "0%"]);
    expect(half.isSeen(Date.parse(at(2)), Date.parse(at(3)))).toBe(false);
  });

  test("a part of a part is a part of the whole; a click is none", () => {
    expect(partOf(within("0.5-1", 0, 0.5))).toEqual([0.5, 0.75]);
    expect(partOf(within("", 0.75, 0.25))).toEqual([0.25, 0.75]);
    expect(within("0.5-1", 0.3, 0.3)).toBe("0.5-1");
    expect(partOf("nonsense")).toEqual([0, 1]);
  });
});

describe("what is summed up", () => {
  test("a worker that is lost has no room in its queues", () => {
    const worker = (state: string, queues: string[]) => ({ state, queues, slots: 4, running: 1 }) as Parameters<typeof queuesOf>[0][number];
    expect(queuesOf([worker("ACTIVE", ["default", "gpu"]), worker("ACTIVE", ["default"]), worker("LOST", ["gpu"])])).toEqual([
      { name: "default", workers: 2, slots: 8, running: 2 },
      { name: "gpu", workers: 1, slots: 4, running: 1 },
    ]);
  });
});

describe("lines of a log", () => {
  const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index));

  test("the newest lines stay, and those before them are counted", () => {
    const first = appended({ entries: [], dropped: 0 }, lines(0, 3), 5);
    expect(first).toEqual({ entries: ["0", "1", "2"], dropped: 0 });
    const second = appended(first, lines(3, 7), 5);
    expect(second).toEqual({ entries: ["2", "3", "4", "5", "6"], dropped: 2 });
    expect(appended(second, lines(7, 30), 5)).toEqual({ entries: ["25", "26", "27", "28", "29"], dropped: 25 });
    expect(appended(second, [], 5)).toEqual(second);
  });

  test("a line that came as it was written is read when it is looked at", () => {
    const line = { at: "2026-01-01T00:00:00Z", stream: "stdout", text: "hello" };
    expect(lineOf(JSON.stringify(line))).toEqual(line);
  });
});
