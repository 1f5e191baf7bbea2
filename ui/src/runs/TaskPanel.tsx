// One task of a run: the log of an attempt, and everything else that is known of it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { taskQuery } from "../api/queries";
import { Choose } from "../parts/fields";
import { assetHref, between, bytes, dataHref, dotted, duration, plural } from "../parts/format";
import { DataTable, Metadata } from "../parts/Metadata";
import { Empty, Panel, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
import { Ago, useNow } from "../parts/Time";
import { LogView } from "./LogView";
import { isActive, taskName, type Task } from "./useRun";

/** `execution failed` of `execution_failed`. */
const wordsOf = (name: string) => name.replaceAll("_", " ");

export function TaskLog({ task }: { task: Task }) {
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
            <>
              <span className="grow" />
              <Choose label="Attempt" isSmall value={String(attempt)} choices={attempts.map((each): [string, string] => [String(each.attempt), `attempt ${String(each.attempt)}${each.error == null ? "" : `: ${each.error.error_type ?? each.error.code}`}`])} onChange={(value) => { setChosen(Number(value)); }} />
            </>
          ) : null}
        </>
      }
    >
      {attempt === 0 ? (
        <Empty title="No attempt has begun" />
      ) : (
        <LogView key={`${task.run_id} ${task.task_id} ${String(attempt)}`} run={task.run_id} task={task.task_id} attempt={attempt} isLive={isActive(task) && attempt === task.attempt && task.state === "RUNNING"} />
      )}
    </Panel>
  );
}

export function TaskPanel({ task }: { task: Task }) {
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
              <dd>{wordsOf(data.transition_reason)}</dd>
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
            <Table
              label="Attempts"
              items={data.attempts}
              id={(attempt) => String(attempt.attempt)}
              columns={[
                { head: "Attempt", cell: (attempt) => attempt.attempt },
                { head: "Reason", cell: (attempt) => wordsOf(attempt.transition_reason) },
                { head: "Began", cell: (attempt) => <Ago at={attempt.started_at ?? undefined} /> },
                { head: "Took", className: "right", cell: (attempt) => between(attempt.started_at ?? undefined, attempt.ended_at ?? undefined, now) },
                { head: "CPU", className: "right", cell: (attempt) => (attempt.usage == null ? "–" : duration(attempt.usage.cpu_ms)) },
                { head: "Memory", className: "right", cell: (attempt) => (attempt.usage == null ? "–" : bytes(attempt.usage.max_rss_bytes)) },
                { head: "Error", cell: (attempt) => (attempt.error == null ? "" : `${attempt.error.error_type ?? attempt.error.code}: ${attempt.error.message}`) },
              ]}
            />
            {data.outputs?.map((output) => (
              <div key={output.asset} className="stack" style={{ gap: 8 }}>
                <h2>
                  {dotted(output.asset)}{" "}
                  <span className="muted">
                    {output.row_count == null ? "" : `${plural(output.row_count, "row")}, `}
                    {output.byte_size == null ? "" : bytes(output.byte_size)}
                  </span>
                </h2>
                <Metadata of={output.metadata ?? {}} materialization={data.materialization_id == null || output.state !== "COMMITTED" ? undefined : { asset: output.asset, materialization: data.materialization_id, partition: task.partition }} />
                {output.schema == null || Object.keys(output.schema).length === 0 ? null : (
                  <details>
                    <summary className="muted">{plural(Object.keys(output.schema).length, "column")}</summary>
                    <DataTable label={`Columns of ${dotted(output.asset)}`} columns={["column", "type"]} rows={Object.entries(output.schema)} />
                  </details>
                )}
                <p>
                  <Link href={dataHref(output.asset, task.partition)} className="button small">
                    Show the data
                  </Link>
                </p>
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
