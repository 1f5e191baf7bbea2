// One run: what it is doing, what went wrong, and what to do about it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { answer, api, once } from "../api/client";
import { taskQuery, whyQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { Dialog } from "../parts/Dialog";
import { assetHref, between, bytes, count, dotted, duration, exactly, plural, runHref } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Ago, useNow } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { Failures } from "./Failures";
import { Gantt } from "./Gantt";
import { LogView } from "./LogView";
import { partitionsText, progressOf, tasksText } from "./text";
import { sourceOf, useScheduleNames } from "./source";
import { isActive, isRunActive, taskName, useRun, type Run, type Task } from "./useRun";
import { Act } from "../parts/Act";

/** Runs with more tasks begin with a row for each asset. */
const ONE_BY_ONE = 40;
/** Runs with more assets begin with tasks all the same: the list of those is virtual. */
const MOST_ASSETS = 100;

export default function RunPage({ id }: { id: string }) {
  const { run, tasks, error } = useRun(id);
  const [tab, setTab] = useParam("tab", "log");
  const [chosen, setChosen] = useParam("task");
  const [rows, setRows] = useParam("rows");
  const assets = useMemo(() => new Set(tasks.map((task) => task.asset_key)).size, [tasks]);
  const byAsset = rows === "" ? tasks.length > ONE_BY_ONE && assets <= MOST_ASSETS : rows === "assets";
  const why = useQuery(whyQuery(id, run !== undefined && isRunActive(run)));
  const selected = useMemo(() => {
    if (chosen !== "") return chosen;
    const best = tasks.find((task) => task.state === "FAILED") ?? tasks.find((task) => task.state === "RUNNING") ?? tasks.find((task) => task.attempt > 0) ?? tasks[0];
    return best?.task_id ?? "";
  }, [chosen, tasks]);
  const select = useCallback(
    (task: string) => {
      setChosen(task);
    },
    [setChosen],
  );
  if (run === undefined)
    return (
      <div className="page">
        {error === undefined ? <Skeleton rows={10} /> : <ProblemBox error={error} />}
      </div>
    );
  const task = tasks.find((each) => each.task_id === selected);
  const waits = why.data?.waits ?? [];
  return (
    <div className="page stack">
      <RunHead run={run} />
      {isRunActive(run) && waits.length > 0 ? (
        <p className="notice">
          {waits.map((wait) => (
            <span key={wait.detail}>
              {wait.detail}, since <Ago at={wait.since} />. <span className="muted">{wait.remedy}</span>
            </span>
          ))}
        </p>
      ) : null}
      <Failures run={id} tasks={tasks} onSelect={select} />
      <Panel
        title="Tasks over time"
        label="Tasks over time"
        aside={
          <>
          <div className="segments" role="group" aria-label="Rows" style={{ transform: "scale(0.9)" }}>
            {(["tasks", "assets"] as const).map((each) => (
              <button
                key={each}
                type="button"
                aria-pressed={(byAsset ? "assets" : "tasks") === each}
                onClick={() => {
                  setRows(each);
                }}
              >
                {each === "tasks" ? "By task" : "By asset"}
              </button>
            ))}
          </div>
          <span className="legend" style={{ marginLeft: "auto" }}>
            <span>
              <i className="fill-queued" />
              waiting
            </span>
            <span>
              <i className="fill-running" />
              running
            </span>
            <span>
              <i className="fill-succeeded" />
              succeeded
            </span>
            <span>
              <i className="fill-failed" />
              failed
            </span>
          </span>
          </>
        }
      >
        <Gantt run={run} tasks={tasks} why={why.data} selected={selected} onSelect={select} byAsset={byAsset} />
      </Panel>
      <div>
        <nav className="tabs" aria-label="Details">
          {[
            ["log", "Log"],
            ["task", "Task"],
            ["tasks", `Tasks ${count(tasks.length)}`],
            ["request", "Request"],
          ].map(([name, title]) => (
            <a
              key={name}
              href={`?${new URLSearchParams({ tab: name ?? "", ...(chosen === "" ? {} : { task: chosen }) }).toString()}`}
              aria-current={tab === name ? "page" : undefined}
              onClick={(event) => {
                event.preventDefault();
                setTab(name ?? "log");
              }}
            >
              {title}
            </a>
          ))}
        </nav>
        <div style={{ marginTop: 12 }}>
          {tab === "log" ? task === undefined ? <Empty title="The run has no task yet" /> : <TaskLog key={task.task_id} task={task} /> : null}
          {tab === "task" ? task === undefined ? <Empty title="The run has no task yet" /> : <TaskPanel key={task.task_id} task={task} /> : null}
          {tab === "tasks" ? <TaskTable tasks={tasks} selected={selected} onSelect={select} /> : null}
          {tab === "request" ? <Request run={run} /> : null}
        </div>
      </div>
    </div>
  );
}

function RunHead({ run }: { run: Run }) {
  const now = useNow();
  const [, navigate] = useLocation();
  const [cancels, setCancels] = useState(false);
  const source = sourceOf(run, useScheduleNames());
  const retry = useMutation({
    mutationFn: (from_failure: boolean) => answer(api.POST("/api/v1/runs/{run_id}/retry", { params: { path: { run_id: run.run_id }, header: once() }, body: { from_failure } })),
    onSuccess: (accepted) => {
      toast(`Asked for a run of ${plural(accepted.tasks, "task")}`);
      navigate(runHref(accepted.run_id));
    },
    onError: toastError,
  });
  const isOver = !isRunActive(run);
  const failed = run.tasks_failed + run.tasks_skipped + run.tasks_cancelled;
  return (
    <div className="runbar" style={{ marginBottom: 0 }}>
      <div className="page-head" style={{ margin: 0 }}>
        <h1>
          <span className="mono" style={{ fontSize: 18 }}>
            {run.selection ?? run.run_key}
          </span>{" "}
          <span className="muted" style={{ fontSize: 14, fontWeight: 400 }}>
            {partitionsText(run)}
          </span>
        </h1>
        <div className="actions">
          {isOver ? (
            <>
              {failed > 0 ? (
                <Act needs="runs.retry"
                 
                  className="button primary"
                  disabled={retry.isPending}
                  onClick={() => {
                    retry.mutate(true);
                  }}
                >
                  Retry from failure
                </Act>
              ) : null}
              <Act needs="runs.retry"
               
                className="button"
                disabled={retry.isPending}
                onClick={() => {
                  retry.mutate(false);
                }}
              >
                Run again
              </Act>
              {run.selection == null || run.selection === "" ? null : (
                <Act needs="runs.trigger"
                 
                  className="button"
                  onClick={() => {
                    materializeStore.open({ selection: run.selection ?? "", keys: run.partitions?.keys ?? [], ranges: run.partitions?.ranges ?? [] });
                  }}
                >
                  Change and run…
                </Act>
              )}
            </>
          ) : (
            <Act needs="runs.cancel"
             
              className="button danger"
              onClick={() => {
                setCancels(true);
              }}
            >
              Cancel run
            </Act>
          )}
        </div>
      </div>
      <div className="row wrap" style={{ fontSize: 13, gap: "4px 16px" }}>
        <State state={run.state} progress={progressOf(run)} />
        <span title={run.started_at == null ? undefined : exactly(run.started_at)}>
          {isOver ? "took" : "for"} {between(run.started_at ?? run.created_at, run.finished_at ?? undefined, now)}
        </span>
        <span>{tasksText(run)}</span>
        {(run.checks_failed ?? 0) > 0 ? <span style={{ color: "var(--blocked)" }}>{plural(run.checks_failed ?? 0, "check")} failed</span> : null}
        <span className="muted">
          {source.href === undefined ? source.text : <Link href={source.href}>{source.text}</Link>}, <Ago at={run.created_at} />
        </span>
        <button
          type="button"
          className="mono muted"
          style={{ border: 0, background: "transparent", cursor: "copy", padding: 0 }}
          title="Copy the id"
          onClick={() => {
            void navigator.clipboard.writeText(run.run_id).then(() => {
              toast("The id is copied");
            });
          }}
        >
          {run.run_id}
        </button>
      </div>
      {cancels ? (
        <CancelDialog
          run={run}
          onClose={() => {
            setCancels(false);
          }}
        />
      ) : null}
    </div>
  );
}

function CancelDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const cancel = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/runs/{run_id}/cancel", { params: { path: { run_id: run.run_id }, header: once() }, body: { reason } })),
    onSuccess: () => {
      toast("The run is being cancelled");
      onClose();
    },
  });
  const open = run.tasks_total - run.tasks_succeeded - run.tasks_failed - run.tasks_skipped - run.tasks_cancelled;
  return (
    <Dialog title="Cancel this run?" onClose={onClose}>
      <div className="content">
        <p>
          {plural(open, "task")} will not be made; those that run are asked to stop. What has succeeded stays.
        </p>
        <label className="line">
          Reason, for the audit
          <input
            className="field"
            value={reason}
            onChange={(event) => {
              setReason(event.target.value);
            }}
          />
        </label>
        {cancel.error === null ? null : <ProblemBox error={cancel.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Keep it running
        </button>
        <button
          type="button"
          className="button danger"
          disabled={cancel.isPending}
          onClick={() => {
            cancel.mutate();
          }}
        >
          Cancel {plural(open, "task")}
        </button>
      </footer>
    </Dialog>
  );
}

function TaskLog({ task }: { task: Task }) {
  const query = useQuery(taskQuery(task.run_id, task.task_id));
  const [chosen, setChosen] = useState<number | undefined>();
  const attempts = query.data?.attempts ?? [];
  const attempt = chosen ?? task.attempt;
  return (
    <Panel
      label="Log of the task"
      title={taskName(task)}
      aside={
        <>
          <State state={task.state} />
          {attempts.length > 1 ? (
            <select
              className="field"
              style={{ height: 26, marginLeft: "auto" }}
              aria-label="Attempt"
              value={attempt}
              onChange={(event) => {
                setChosen(Number(event.target.value));
              }}
            >
              {attempts.map((each) => (
                <option key={each.attempt} value={each.attempt}>
                  attempt {each.attempt}
                  {each.error == null ? "" : `: ${each.error.error_type ?? each.error.code}`}
                </option>
              ))}
            </select>
          ) : null}
        </>
      }
    >
      {attempt === 0 ? (
        <Empty title="No attempt has begun" />
      ) : (
        <LogView run={task.run_id} task={task.task_id} attempt={attempt} isLive={isActive(task) && attempt === task.attempt && task.state === "RUNNING"} />
      )}
    </Panel>
  );
}

function TaskPanel({ task }: { task: Task }) {
  const query = useQuery(taskQuery(task.run_id, task.task_id));
  const now = useNow();
  return (
    <Panel title={taskName(task)} aside={<State state={task.state} />}>
      <Shown query={query}>
        {(data) => (
          <div className="body stack">
            <dl className="facts">
              <dt>Asset</dt>
              <dd>
                <Link href={assetHref(data.asset_key)}>{dotted(data.asset_key)}</Link>
              </dd>
              <dt>Reason</dt>
              <dd>{data.transition_reason}</dd>
              <dt>Worker</dt>
              <dd>{data.worker_id ?? "–"}</dd>
              {data.error == null ? null : (
                <>
                  <dt>Error</dt>
                  <dd>
                    {data.error.error_type ?? data.error.code}: {data.error.message}
                    {data.error.traceback == null ? null : <pre style={{ marginTop: 6 }}>{data.error.traceback}</pre>}
                  </dd>
                </>
              )}
            </dl>
            <table className="table">
              <thead>
                <tr>
                  <th>Attempt</th>
                  <th>Reason</th>
                  <th>Began</th>
                  <th className="right">Took</th>
                  <th className="right">CPU</th>
                  <th className="right">Memory</th>
                  <th>Error</th>
                </tr>
              </thead>
              <tbody>
                {data.attempts.map((attempt) => (
                  <tr key={attempt.attempt}>
                    <td>{attempt.attempt}</td>
                    <td>{attempt.transition_reason}</td>
                    <td>
                      <Ago at={attempt.started_at ?? undefined} />
                    </td>
                    <td className="right">{between(attempt.started_at ?? undefined, attempt.ended_at ?? undefined, now)}</td>
                    <td className="right">{attempt.usage == null ? "–" : duration(attempt.usage.cpu_ms)}</td>
                    <td className="right">{attempt.usage == null ? "–" : bytes(attempt.usage.max_rss_bytes)}</td>
                    <td>{attempt.error == null ? "" : `${attempt.error.error_type ?? attempt.error.code}: ${attempt.error.message}`}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {data.outputs?.map((output) => (
              <div key={output.asset} className="stack" style={{ gap: 8 }}>
                <h2>
                  {dotted(output.asset)}{" "}
                  <span className="muted">
                    {output.row_count == null ? "" : `${plural(output.row_count, "row")}, `}
                    {output.byte_size == null ? "" : bytes(output.byte_size)}
                  </span>
                </h2>
                {Object.keys(output.metadata ?? {}).length === 0 ? null : (
                  <dl className="facts">
                    {Object.entries(output.metadata ?? {}).map(([name, value]) => (
                      <div key={name} style={{ display: "contents" }}>
                        <dt>{name}</dt>
                        <dd className="mono">{JSON.stringify(value)}</dd>
                      </div>
                    ))}
                  </dl>
                )}
                {output.checks?.map((check) => (
                  <div key={check.name} className="row" style={{ fontSize: 13 }}>
                    <State state={check.passed ? "SUCCEEDED" : "FAILED"} word={check.passed ? "passed" : "failed"} />
                    <span className="mono">{check.name}</span>
                    <span className="muted ellipsis">{check.message ?? ""}</span>
                  </div>
                ))}
              </div>
            ))}
          </div>
        )}
      </Shown>
    </Panel>
  );
}

const MOST_ROWS = 500;

function TaskTable({ tasks, selected, onSelect }: { tasks: readonly Task[]; selected: string; onSelect: (task: string) => void }) {
  const now = useNow();
  const order = (task: Task) => (task.state === "FAILED" ? 0 : task.state === "RUNNING" ? 1 : task.state === "SKIPPED" ? 3 : 2);
  const sorted = useMemo(() => [...tasks].sort((a, b) => order(a) - order(b) || (a.task_key < b.task_key ? -1 : 1)).slice(0, MOST_ROWS), [tasks]);
  return (
    <section className="panel scroll">
      <table className="table">
        <thead>
          <tr>
            <th>State</th>
            <th>Task</th>
            <th className="right">Attempts</th>
            <th className="right">Took</th>
            <th>Checks</th>
            <th>Why</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((task) => (
            <tr
              key={task.task_id}
              data-current={task.task_id === selected}
              onClick={() => {
                onSelect(task.task_id);
              }}
            >
              <td>
                <State state={task.state} />
              </td>
              <td>
                <Link href={assetHref(task.asset_key)} className="mono">
                  {taskName(task)}
                </Link>
              </td>
              <td className="right">{task.attempt}</td>
              <td className="right">{between(task.started_at ?? undefined, task.finished_at ?? undefined, now)}</td>
              <td>{(task.checks ?? 0) === 0 ? <span className="muted">–</span> : (task.checks_failed ?? 0) > 0 ? `${String(task.checks_failed)} failed` : `${String(task.checks)} passed`}</td>
              <td className="muted">{task.error == null ? task.transition_reason : `${task.error.error_type ?? task.error.code}: ${task.error.message}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tasks.length > MOST_ROWS ? <p className="muted" style={{ padding: 12 }}>The first {count(MOST_ROWS)} of {count(tasks.length)}; the chart above has all.</p> : null}
    </section>
  );
}

function Request({ run }: { run: Run }) {
  return (
    <Panel>
      <div className="body" style={{ paddingTop: 12 }}>
        <dl className="facts">
          <dt>Selection</dt>
          <dd className="mono">{run.selection ?? "–"}</dd>
          <dt>Partitions</dt>
          <dd>{partitionsText(run) === "" ? "as the assets have them" : partitionsText(run)}</dd>
          <dt>Configuration</dt>
          <dd className="mono">{Object.keys(run.config ?? {}).length === 0 ? "–" : JSON.stringify(run.config, undefined, 2)}</dd>
          <dt>Labels</dt>
          <dd>{Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`).join(", ") || "–"}</dd>
          <dt>Asked for by</dt>
          <dd>
            {run.requested_by}, {exactly(run.created_at).split("\n")[0]}
          </dd>
          <dt>Run key</dt>
          <dd className="mono">{run.run_key}</dd>
          <dt>Priority</dt>
          <dd>{run.priority}</dd>
          {run.cancelled_by == null ? null : (
            <>
              <dt>Cancelled by</dt>
              <dd>
                {run.cancelled_by} {run.cancel_reason ?? ""}
              </dd>
            </>
          )}
        </dl>
      </div>
    </Panel>
  );
}
