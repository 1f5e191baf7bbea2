// What happened in a run, in the order in which it did: transitions of the run and of its tasks, attempt by attempt.
import { dotted, plural } from "../parts/format";
import { taskName, type Run, type Task } from "./useRun";

export interface Transition {
  id: string;
  at: string;
  /** The state that it led to, as marks know it. */
  state: string;
  what: string;
  task?: Task;
  attempt?: number;
  detail?: string;
}

const failureText = (error: { error_type?: string | null; code: string; message: string } | null | undefined) => (error == null ? undefined : `${error.error_type ?? error.code}: ${error.message}`);

function* ofTask(task: Task): Generator<Transition> {
  const name = taskName(task);
  const step = (at: string | null | undefined, state: string, what: string, attempt?: number, detail?: string): Transition[] =>
    at == null ? [] : [{ id: `${task.task_id} ${what} ${String(attempt ?? 0)}`, at, state, what: `${name} ${what}`, task, ...(attempt === undefined ? {} : { attempt }), ...(detail === undefined ? {} : { detail }) }];
  const past = task.past_attempts ?? [];
  yield* step(past.length === 0 ? task.ready_at : undefined, "READY", "is ready");
  for (const each of past) {
    yield* step(each.started_at, "RUNNING", "began", each.attempt, each.worker_id ?? undefined);
    yield* step(each.ended_at, "RETRY_WAIT", each.error == null ? "was lost" : "failed and is tried again", each.attempt, failureText(each.error) ?? each.transition_reason);
  }
  if (past.some((each) => each.attempt === task.attempt)) return;
  yield* step(task.dispatched_at, "DISPATCHED", "was dispatched", task.attempt);
  yield* step(task.started_at, "RUNNING", "began", task.attempt, task.worker_id ?? undefined);
  const checks = (task.checks ?? 0) === 0 ? undefined : (task.checks_failed ?? 0) > 0 ? `${String(task.checks_failed)} of ${String(task.checks)} checks failed` : `${String(task.checks)} checks passed`;
  if (task.state === "SUCCEEDED") yield* step(task.finished_at, task.state, "succeeded", task.attempt, checks);
  if (task.state === "FAILED") yield* step(task.finished_at, task.state, "failed", task.attempt, failureText(task.error));
  if (task.state === "SKIPPED") yield* step(task.finished_at ?? task.transition_at, task.state, "was skipped", undefined, task.caused_by == null ? task.transition_reason : `${dotted(task.caused_by).replace(":materialize", "")} failed`);
  if (task.state === "CANCELLED") yield* step(task.finished_at ?? task.transition_at, task.state, "was cancelled", undefined, task.transition_reason);
}

/** Transitions of a run and its tasks, the oldest first. */
export function transitionsOf(run: Run, tasks: readonly Task[]): Transition[] {
  const found: Transition[] = [{ id: "asked", at: run.created_at, state: "REQUESTED", what: "Asked for", detail: `by ${run.requested_by}` }];
  if (run.started_at != null) found.push({ id: "began", at: run.started_at, state: "RUNNING", what: "The run began", detail: `${plural(run.tasks_total, "task")} planned` });
  if (run.cancel_requested_at != null) found.push({ id: "cancel", at: run.cancel_requested_at, state: "CANCELLING", what: "Somebody cancelled the run", detail: [run.cancelled_by, run.cancel_reason].filter(Boolean).join(": ") });
  for (const task of tasks) found.push(...ofTask(task));
  if (run.finished_at != null) found.push({ id: "ended", at: run.finished_at, state: run.state, what: "The run ended", detail: run.transition_reason });
  // Of the same moment, what was found first came first.
  return found.map((each, index) => [Date.parse(each.at), index, each] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , each]) => each);
}
