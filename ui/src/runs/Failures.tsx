// What went wrong, on screen without a click: the exception and the user's own line.
import { useQuery } from "@tanstack/react-query";
import { taskQuery } from "../api/queries";
import { plural } from "../parts/format";
import { Mark } from "../parts/State";
import { taskName, type Task } from "./useRun";

/** The last line of the user's code in a traceback, and the lines around it. */
export function userLine(traceback: string): { place: string; source: string } | undefined {
  const lines = traceback.split("\n");
  for (let at = lines.length - 1; at >= 0; at--) {
    const found = /^\s*File "(.+)", line (\d+), in (.+)$/.exec(lines[at] ?? "");
    if (found !== null) return { place: `${found[1] ?? ""}:${found[2] ?? ""} in ${found[3] ?? ""}`, source: (lines[at + 1] ?? "").trim() };
  }
  return undefined;
}

export function Failures({ run, tasks, onSelect }: { run: string; tasks: readonly Task[]; onSelect: (task: string) => void }) {
  const failed = tasks.filter((task) => task.state === "FAILED");
  const first = failed[0];
  if (first === undefined) return null;
  return (
    <section className="failure" aria-label="Failure">
      <header>
        <span className="row">
          <Mark tone="failed" />
          <strong>
            {plural(failed.length, "task")} of {tasks.length} failed
          </strong>
        </span>
        {failed.slice(0, 3).map((task) => (
          <button
            key={task.task_id}
            type="button"
            className="button small"
            onClick={() => {
              onSelect(task.task_id);
            }}
          >
            {taskName(task)}
          </button>
        ))}
        {failed.length > 3 ? <span className="muted">and {failed.length - 3} more</span> : null}
      </header>
      <FirstFailure run={run} task={first} />
    </section>
  );
}

function FirstFailure({ run, task }: { run: string; task: Task }) {
  const { data } = useQuery(taskQuery(run, task.task_id));
  const error = data?.attempts.find((attempt) => attempt.error?.traceback != null)?.error ?? data?.error ?? task.error;
  if (error == null) return null;
  const traceback = error.traceback ?? undefined;
  const line = traceback === undefined ? undefined : userLine(traceback);
  return (
    <>
      <div style={{ padding: "0 12px 10px", fontSize: 13 }} className="stack">
        <div>
          <strong style={{ color: "var(--failed)" }}>
            {error.error_type ?? error.code}: {error.message}
          </strong>
          {line === undefined ? null : (
            <div className="mono" data-testid="user-line" style={{ marginTop: 6 }}>
              <span className="muted">{line.place}</span>
              <br />
              <span>{line.source}</span>
            </div>
          )}
          {error.suggested_action == null ? null : <p className="muted" style={{ marginTop: 6 }}>{error.suggested_action}</p>}
        </div>
      </div>
      {traceback === undefined ? null : (
        <details>
          <summary style={{ padding: "0 12px 8px", fontSize: 13, cursor: "pointer" }} className="muted">
            Whole traceback
          </summary>
          <pre>{traceback}</pre>
        </details>
      )}
    </>
  );
}
