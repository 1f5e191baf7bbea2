// One schedule: its ticks and what they did, what comes next, and a tick now.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { previewQuery, ticksQuery } from "../api/queries";
import { PlanView } from "../materialize/PlanView";
import { Act } from "../parts/Act";
import { ActionDialog } from "../parts/ActionDialog";
import { Field } from "../parts/fields";
import { chosen, exactly, plural, runHref, shortRun } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, ProblemBox, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";
import { useDebounced } from "../parts/useDebounced";
import { useToggle } from "./useToggle";

export default function SchedulePage({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["schedules", name],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/schedules/{schedule}", { params: { path: { schedule: name } }, signal })),
    retry: false,
  });
  return (
    <div className="page">
      <Shown query={query} rows={8}>
        {(schedule) => <Detail schedule={schedule} />}
      </Shown>
    </div>
  );
}

const TICKS: Column<Schemas["Tick"]>[] = [
  {
    head: "For",
    className: "nowrap",
    title: (tick) => exactly(tick.scheduled_for),
    cell: (tick) => (
      <>
        <Ago at={tick.scheduled_for} /> {tick.manual ? <span className="chip">by hand</span> : null}
      </>
    ),
  },
  { head: "Result", cell: (tick) => <State state={tick.status} /> },
  { head: "Run", className: "mono", cell: (tick) => tick.runs?.map((run) => <Link key={run.run_id} href={runHref(run.run_id)}>{shortRun(run.run_id)}</Link>) ?? "–" },
  { head: "Why", className: "muted", cell: (tick) => tick.reason ?? "" },
];

/** What a tick does while a run of an earlier one is active. */
const IF_RUNNING: Record<string, string> = { allow: "it runs beside it", skip: "the tick is skipped", queue: "it waits for it" };

function Detail({ schedule }: { schedule: Schemas["Schedule"] }) {
  const ticks = useQuery(ticksQuery(schedule.name, 50));
  const preview = useQuery(previewQuery(schedule.name));
  const { isOn, toggle, isPending } = useToggle({ ...schedule, kind: "schedule" });
  const [triggers, setTriggers] = useState(false);
  return (
    <div className="stack">
      <PageHead
        of={["/automation", "Automation"]}
        title={schedule.name}
        actions={
          <>
            <Act needs="automation.operate" className="button" disabled={isPending} onClick={() => { toggle(); }}>
              {isOn ? "Pause" : "Resume"}
            </Act>
            <Act
              needs="runs.trigger"
              className="button primary"
              onClick={() => {
                setTriggers(true);
              }}
            >
              Tick now…
            </Act>
          </>
        }
      >
        <span className="chip">schedule</span>
        <State state={schedule.status} />
      </PageHead>
      {schedule.description == null ? null : <p style={{ maxWidth: "80ch" }}>{schedule.description}</p>}
      {schedule.last_error == null ? null : (
        <p className="problem">
          <strong>The last tick failed</strong>
          <span>{schedule.last_error}</span>
        </p>
      )}
      <div className="columns">
        <Panel title="Ticks" label="Ticks">
          <Shown query={ticks} rows={6}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty title="No tick yet">
                  <p>Every tick is listed here, with the run it asked for or why it asked for none.</p>
                </Empty>
              ) : (
                <Table label="Table of ticks" items={items} columns={TICKS} id={(tick) => tick.tick_id} />
              )
            }
          </Shown>
        </Panel>
        <div className="stack">
          <Panel title="Next ticks" label="Next ticks">
            <Shown query={preview} rows={3}>
              {(data) => (
                <ul className="attention">
                  {data.ticks.map((tick) => (
                    <li key={tick}>
                      <span className="grow">{exactly(tick).split("\n")[0]}</span>
                      <span className="muted">
                        <Ago at={tick} />
                      </span>
                    </li>
                  ))}
                </ul>
              )}
            </Shown>
          </Panel>
          <Panel title="Definition" label="Definition">
            <dl className="facts body">
              <dt>When</dt>
              <dd>
                <span className="mono">{schedule.cron}</span> {schedule.timezone}
              </dd>
              <dt>What</dt>
              <dd className="mono">{schedule.selection ?? schedule.function ?? "–"}</dd>
              <dt>If running</dt>
              <dd>{IF_RUNNING[schedule.if_running] ?? schedule.if_running}</dd>
              <dt>Catch-up</dt>
              <dd>
                at most {plural(schedule.max_catchup_ticks, "tick")} of the last {chosen(schedule.catchup_window_minutes * 60_000)}
              </dd>
              <dt>Defined by</dt>
              <dd>{schedule.origin}</dd>
            </dl>
          </Panel>
        </div>
      </div>
      {triggers ? (
        <TriggerDialog
          schedule={schedule}
          onClose={() => {
            setTriggers(false);
          }}
        />
      ) : null}
    </div>
  );
}

/** What a tick of a function came to last time, in a sentence. */
export function lastTickText(ticks: readonly Schemas["Tick"][]): string {
  const last = ticks.find((tick) => tick.status !== "SKIPPED");
  if (last === undefined) return "It has not been called yet.";
  const runs = last.runs?.length ?? 0;
  const what = runs > 0 ? `asked for ${plural(runs, "run")}` : last.status === "FAILED" ? `failed${last.reason == null ? "" : `: ${last.reason}`}` : `asked for nothing${last.reason == null ? "" : `: ${last.reason}`}`;
  return `When it was called last, for ${exactly(last.scheduled_for).split("\n")[0] ?? last.scheduled_for}, it ${what}.`;
}

function TriggerDialog({ schedule, onClose }: { schedule: Schemas["Schedule"]; onClose: () => void }) {
  const [keys, setKeys] = useState("");
  const rested = useDebounced(keys.trim());
  const words = rested.split(/[\s;]+/).filter(Boolean);
  const isFunction = schedule.selection == null;
  const selection = schedule.selection ?? "";
  // A tick takes the newest partition of assets that have some, and none otherwise; so does its plan.
  const assets = useQuery({
    queryKey: ["assets", "tick", selection],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { selection, limit: 100 } }, signal })),
    enabled: !isFunction,
    retry: false,
  });
  const isPartitioned = assets.data?.items.some((asset) => asset.partitioned && !asset.external) === true || assets.data?.next_cursor != null;
  const named = { keys: words.filter((word) => !word.includes("..")), ranges: words.filter((word) => word.includes("..")) };
  // Partitions that the schedule itself names go before the newest.
  const own = schedule.partitions;
  const hasOwn = own !== undefined && Object.values(own).some((each) => each === true || (Array.isArray(each) && each.length > 0));
  const partitions = words.length > 0 ? named : hasOwn ? own : isPartitioned ? { latest: true } : undefined;
  const plan = useQuery({
    queryKey: ["plan", "tick", selection, partitions, schedule.config],
    queryFn: async ({ signal }) => answer(api.POST("/api/v1/plan", { body: { selection, ...(partitions === undefined ? {} : { partitions }), ...(schedule.config === undefined ? {} : { config: schedule.config }) }, signal })),
    enabled: !isFunction && assets.data !== undefined && rested === keys.trim(),
    retry: false,
    staleTime: 0,
  });
  const ticks = useQuery({ ...ticksQuery(schedule.name, 50), enabled: isFunction });
  const error = assets.error ?? plan.error;
  const tasks = error === null && rested === keys.trim() ? plan.data?.tasks.length : undefined;
  const parts = plan.data === undefined ? [] : partitionsOfPlan(plan.data);
  const trigger = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/orchestration/schedules/{schedule}/trigger", {
          params: { path: { schedule: schedule.name }, header: once() },
          body: words.length === 0 ? {} : { partitions: named },
        }),
      ),
    onSuccess: () => {
      toast(`${schedule.name} ticked`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title={`Tick ${schedule.name} now`}
      onClose={onClose}
      action={tasks === undefined ? "Tick now" : `Tick now: ${plural(tasks, "task")}`}
      onAct={() => {
        trigger.mutate();
      }}
      change={trigger}
    >
      <p>
        {isFunction ? "It calls " : "It asks for a run of "}
        <code>{schedule.selection ?? schedule.function}</code>, as a tick at this moment would{schedule.if_running === "allow" ? "" : `; if a run of an earlier tick is active, it ${schedule.if_running === "skip" ? "is skipped" : "waits for that"}`}.
      </p>
      <Field label={isFunction ? "Partitions, for the function to know of" : hasOwn ? "Partitions instead of those of the schedule" : "Partitions instead of the newest complete one"} isMono placeholder="2013-01-15 2013-02-01..2013-02-28" value={keys} onChange={setKeys} />
      <section className="stack" style={{ gap: 8 }} aria-label="What it would run">
        <h2>What it would run</h2>
        {isFunction ? (
          <>
            <p>That is not known before: the function decides when it is called, and calling it may have effects of its own, so it is not called to look.</p>
            <p className="muted">{ticks.data === undefined ? "" : lastTickText(ticks.data.items)}</p>
          </>
        ) : null}
        {error === null ? null : <ProblemBox error={error} />}
        {!isFunction && error === null && plan.data === undefined ? <p className="muted">Planning…</p> : null}
        {parts.length === 0 || error !== null ? null : (
          <p>
            {plural(parts.length, "partition")}: <span className="mono">{parts.length > 3 ? `${parts[0] ?? ""} … ${parts.at(-1) ?? ""}` : parts.join(", ")}</span>
            {words.length === 0 && !hasOwn ? <span className="muted"> (the newest complete {parts.length === 1 ? "one" : "ones"})</span> : null}
          </p>
        )}
        {plan.data === undefined || error !== null ? null : <PlanView plan={plan.data} />}
      </section>
    </ActionDialog>
  );
}

/** Partitions that a plan makes, each once, in their order. */
export const partitionsOfPlan = (plan: Schemas["Plan"]): string[] => [...new Set(plan.tasks.flatMap((task) => (task.partition == null ? [] : [task.partition])))].sort();
