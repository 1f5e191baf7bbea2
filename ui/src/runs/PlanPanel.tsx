// The plan that a run follows: assets in stages, what they wait for, and the chain that decided how long it took.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { runPlanQuery } from "../api/queries";
import { assetHref, between, count, dotted, plural } from "../parts/format";
import { Empty, Panel, Shown } from "../parts/Panel";
import { Mark, toneOf, wordOf } from "../parts/State";
import { Table, type Column } from "../parts/Table";
import { useNow } from "../parts/Time";
import { taskName, type Run, type Task } from "./useRun";

type Step = Schemas["PlanStep"];

const MOST_NAMED = 4;
const MOST_ON_PATH = 50;

const COLUMNS: Column<Step>[] = [
  { head: "Stage", className: "nowrap", cell: (step) => (step.first_stage === step.last_stage ? step.first_stage : `${String(step.first_stage)} … ${String(step.last_stage)}`) },
  {
    head: "Asset",
    className: "mono",
    cell: (step) => <Link href={assetHref(step.asset_key)}>{dotted(step.asset_key)}</Link>,
  },
  { head: "Tasks", className: "right", cell: (step) => count(step.tasks) },
  {
    head: "Waits for",
    className: "mono muted",
    title: (step) => step.upstream.map(dotted).join(", "),
    cell: (step) => (step.upstream.length === 0 ? "nothing in this run" : `${step.upstream.slice(0, MOST_NAMED).map(dotted).join(", ")}${step.upstream.length > MOST_NAMED ? ` and ${String(step.upstream.length - MOST_NAMED)} more` : ""}`),
  },
];

export function PlanPanel({ run, tasks, onSelect }: { run: Run; tasks: readonly Task[]; onSelect: (task: string) => void }) {
  const query = useQuery(runPlanQuery(run.run_id, true));
  const now = useNow();
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  return (
    <Shown query={query} rows={6}>
      {(plan) =>
        plan.tasks === 0 ? (
          <Empty title="The run is not planned yet" />
        ) : (
          <div className="columns">
            <Panel title={`${plural(plan.tasks, "task")} in ${plural(plan.stages, "stage")}`} label="Plan" aside={<span className="muted">tasks of a stage wait only for earlier stages</span>}>
              <Table label="Assets of the plan" items={plan.steps} columns={COLUMNS} id={(step) => step.asset_key} />
              {(plan.more_steps ?? 0) > 0 ? <p className="muted" style={{ padding: 12 }}>and {plural(plan.more_steps ?? 0, "asset")} more</p> : null}
            </Panel>
            <Panel title="Critical path" label="Critical path" aside={<span className="muted">each waited for the one before it</span>}>
              {plan.critical_path.length === 0 ? <Empty title="Nothing has begun" /> : null}
              <ol className="attention">
                {plan.critical_path.slice(-MOST_ON_PATH).map((id) => {
                  const task = byId.get(id);
                  if (task === undefined) return null;
                  return (
                    <li key={id}>
                      <Mark tone={toneOf(task.state)} label={wordOf(task.state)} />
                      <button
                        type="button"
                        className="link what ellipsis"
                        onClick={() => {
                          onSelect(id);
                        }}
                      >
                        {taskName(task)}
                      </button>
                      <span className="muted nowrap">{between(task.started_at ?? undefined, task.finished_at ?? undefined, now)}</span>
                    </li>
                  );
                })}
              </ol>
            </Panel>
          </div>
        )
      }
    </Shown>
  );
}
