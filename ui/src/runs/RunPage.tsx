// One run: what it is doing, what went wrong, and what to do about it.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { runPlanQuery, whyQuery } from "../api/queries";
import { Segments, Tabs, type Choices } from "../parts/fields";
import { count } from "../parts/format";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Ago } from "../parts/Time";
import { Events } from "./Events";
import { Failures } from "./Failures";
import { Gantt, type Rows } from "./Gantt";
import { PlanPanel } from "./PlanPanel";
import { Request } from "./Request";
import { RunHead } from "./RunHead";
import { TaskLog, TaskPanel } from "./TaskPanel";
import { TaskTable } from "./TaskTable";
import { isRunActive, useRun } from "./useRun";

/** Runs with more tasks begin with a row for each asset. */
const ONE_BY_ONE = 40;
/** Runs with more assets begin with tasks all the same: the list of those is virtual. */
const MOST_ASSETS = 100;

const ROWS: Choices = [
  ["tasks", "By task"],
  ["assets", "By asset"],
  ["workers", "By worker"],
];

const LEGEND: [string, string][] = [
  ["waiting", "waiting"],
  ["fill-running", "running"],
  ["fill-succeeded", "succeeded"],
  ["fill-failed", "failed"],
  ["fill-never", "tried again"],
  ["critical", "critical path"],
];

export default function RunPage({ id }: { id: string }) {
  const { run, tasks, error } = useRun(id);
  const [tab, setTab] = useParam("tab", "log");
  const [chosen, setChosen] = useParam("task");
  const [rows, setRows] = useParam("rows");
  const [part, setPart] = useParam("part");
  const assets = useMemo(() => new Set(tasks.map((task) => task.asset_key)).size, [tasks]);
  const shownRows = rows === "" ? (tasks.length > ONE_BY_ONE && assets <= MOST_ASSETS ? "assets" : "tasks") : rows;
  const why = useQuery(whyQuery(id, run !== undefined && isRunActive(run)));
  // What decided when a run ended is known when it has.
  const plan = useQuery(runPlanQuery(id, run !== undefined && !isRunActive(run)));
  const critical = useMemo(() => new Set(plan.data === undefined || plan.data.critical_path.length < 2 ? [] : plan.data.critical_path), [plan.data]);
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
  const tabs: Choices = [
    ["log", "Log"],
    ["task", "Task"],
    ["tasks", `Tasks ${count(tasks.length)}`],
    ["events", "Events"],
    ["plan", "Plan"],
    ["request", "Request"],
  ];
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
            <Segments label="Rows" value={shownRows} choices={ROWS} onChange={setRows} />
            <span className="legend" style={{ marginLeft: "auto" }}>
              {LEGEND.filter(([fill]) => fill !== "critical" || critical.size > 0).map(([fill, word]) => (
                <span key={word}>
                  <i className={fill} />
                  {word}
                </span>
              ))}
            </span>
          </>
        }
      >
        <Gantt run={run} tasks={tasks} why={why.data} critical={critical} selected={selected} onSelect={select} rows={shownRows as Rows} part={part} onPart={setPart} />
      </Panel>
      <div>
        <Tabs label="Details" value={tab} choices={tabs} href={(name) => `?${new URLSearchParams({ tab: name, ...(chosen === "" ? {} : { task: chosen }) }).toString()}`} onChange={setTab} />
        <div style={{ marginTop: 12 }}>
          {tab === "log" ? task === undefined ? <Empty title="The run has no task yet" /> : <TaskLog key={task.task_id} task={task} /> : null}
          {tab === "task" ? task === undefined ? <Empty title="The run has no task yet" /> : <TaskPanel key={task.task_id} task={task} /> : null}
          {tab === "tasks" ? <TaskTable tasks={tasks} selected={selected} onSelect={select} /> : null}
          {tab === "events" ? <Events run={run} tasks={tasks} selected={selected} onSelect={select} /> : null}
          {tab === "plan" ? <PlanPanel run={run} tasks={tasks} onSelect={select} /> : null}
          {tab === "request" ? <Request run={run} /> : null}
        </div>
      </div>
    </div>
  );
}
