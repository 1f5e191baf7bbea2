// Tasks of a run, the worst first.
import { useMemo } from "react";
import { Link } from "wouter";
import { assetHref, between, count } from "../parts/format";
import { State } from "../parts/State";
import { Table, type Column } from "../parts/Table";
import { useNow } from "../parts/Time";
import { taskName, type Task } from "./useRun";

const MOST_ROWS = 500;

const order = (task: Task) => (task.state === "FAILED" ? 0 : task.state === "RUNNING" ? 1 : task.state === "SKIPPED" ? 3 : 2);

export function TaskTable({ tasks, selected, onSelect }: { tasks: readonly Task[]; selected: string; onSelect: (task: string) => void }) {
  const now = useNow();
  const sorted = useMemo(() => [...tasks].sort((a, b) => order(a) - order(b) || (a.task_key < b.task_key ? -1 : 1)).slice(0, MOST_ROWS), [tasks]);
  const columns: Column<Task>[] = [
    { head: "State", className: "nowrap", cell: (task) => <State state={task.state} /> },
    {
      head: "Task",
      cell: (task) => (
        <Link href={assetHref(task.asset_key)} className="mono">
          {taskName(task)}
        </Link>
      ),
    },
    { head: "Attempts", className: "right", cell: (task) => task.attempt },
    { head: "Took", className: "right nowrap", cell: (task) => between(task.started_at ?? undefined, task.finished_at ?? undefined, now) },
    { head: "Worker", className: "muted", title: (task) => task.worker_id ?? undefined, cell: (task) => <div className="clip">{task.worker_id ?? "–"}</div> },
    { head: "Checks", cell: (task) => ((task.checks ?? 0) === 0 ? <span className="muted">–</span> : (task.checks_failed ?? 0) > 0 ? `${String(task.checks_failed)} failed` : `${String(task.checks)} passed`) },
    { head: "Why", className: "muted", cell: (task) => (task.error == null ? task.transition_reason : `${task.error.error_type ?? task.error.code}: ${task.error.message}`) },
  ];
  return (
    <section className="panel">
      <Table
        label="Tasks"
        items={sorted}
        columns={columns}
        id={(task) => task.task_id}
        isCurrent={(task) => task.task_id === selected}
        onChoose={(task) => {
          onSelect(task.task_id);
        }}
      />
      {tasks.length > MOST_ROWS ? <p className="muted" style={{ padding: 12 }}>The first {count(MOST_ROWS)} of {count(tasks.length)}; the chart above has all.</p> : null}
    </section>
  );
}
