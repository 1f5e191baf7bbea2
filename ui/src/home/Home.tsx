// What needs me? Problems worst first, each with what to do; what runs now; the last day; what comes next.
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { answer, api, once, RequestFailed } from "../api/client";
import { admissionQuery, assetsQuery, deploymentQuery, quarantineQuery, schedulesQuery, sensorsQuery, someRunsQuery, workersQuery } from "../api/queries";
import { knownOf, statusOf } from "../assets/status";
import { materializeStore } from "../materialize/open";
import { Act } from "../parts/Act";
import { assetHref, between, dotted, plural, runHref } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { Mark, type Tone } from "../parts/State";
import { Ago, useNow } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { progressOf, tasksText } from "../runs/text";
import type { Run } from "../runs/useRun";
import { Freshness } from "./Freshness";
import { Strip } from "./Strip";

export function Home() {
  const deployment = useQuery(deploymentQuery);
  const { isPending } = useProblems();
  const isNew = deployment.data === undefined && deployment.error instanceof RequestFailed && deployment.error.status === 404;
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>Home</h1>
        <div className="actions">
          <Act
            needs="runs.trigger"
            className="button primary"
            onClick={() => {
              materializeStore.open({ selection: "" });
            }}
          >
            Materialize…
          </Act>
        </div>
      </div>
      {isNew ? <Welcome /> : null}
      <Attention />
      {/* How much is above is known first: nothing jumps down when it comes. */}
      <div className="columns" style={isPending ? { visibility: "hidden" } : undefined}>
        <div className="stack">
          <Strip />
          <RunningNow />
        </div>
        <div className="stack">
          <Freshness />
          <NextTicks />
          <NewestRuns />
        </div>
      </div>
    </div>
  );
}

function Welcome() {
  return (
    <Panel>
      <Empty title="Nothing is deployed yet">
        <p>servo dev takes up your project whenever you save. A project that runs at once:</p>
        <pre>{"servo init weather && cd weather\nservo dev"}</pre>
      </Empty>
    </Panel>
  );
}

interface Item {
  id: string;
  tone: Tone;
  rank: number;
  at: string | undefined;
  what: ReactNode;
  why: string;
  action: ReactNode;
}

const MOST_ITEMS = 12;

const firstLine = (text: string | null | undefined) => text?.split("\n")[0];

/** Everything that the problems are made of, and whether all of it is known, or why not. */
function useProblems() {
  const assets = useInfiniteQuery(assetsQuery("", { needs_attention: true, limit: 25 }));
  const quarantine = useQuery(quarantineQuery);
  const schedules = useQuery(schedulesQuery);
  const sensors = useQuery(sensorsQuery);
  const admission = useQuery(admissionQuery);
  const workers = useQuery(workersQuery);
  const isPending = [assets, quarantine, schedules, sensors, admission, workers].some((each) => each.isPending);
  return { assets, quarantine, schedules, sensors, admission, workers, isPending };
}

function Attention() {
  const { assets, quarantine, schedules, sensors, admission, workers, isPending } = useProblems();
  const failures = useQuery(someRunsQuery({ state: "FAILED" }, 10));
  const [, navigate] = useLocation();
  const retry = useMutation({
    mutationFn: (run: string) => answer(api.POST("/api/v1/runs/{run_id}/retry", { params: { path: { run_id: run }, header: once() }, body: { from_failure: true } })),
    onSuccess: (accepted) => {
      toast(`Asked for a run of ${plural(accepted.tasks, "task")}`, { href: runHref(accepted.run_id), link: "Watch" });
      navigate(runHref(accepted.run_id));
    },
    onError: toastError,
  });
  if (isPending) return <Panel title="Needs attention"><Skeleton rows={2} /></Panel>;
  if (assets.error !== null && assets.data === undefined) return <ProblemBox error={assets.error} again={() => void assets.refetch()} />;
  const items: Item[] = [];
  for (const pause of admission.data?.paused ?? [])
    items.push({ id: `pause ${pause.scope}`, tone: "stale", rank: 0, at: pause.paused_at, what: <>Dispatching is paused: {pause.scope}</>, why: pause.reason === "" || pause.reason == null ? `by ${pause.paused_by}` : pause.reason, action: <Link className="button small" href="/settings">Resume…</Link> });
  const waits = (admission.data?.tasks_waiting ?? 0) + (admission.data?.tasks_dispatched ?? 0);
  if (waits > 0 && workers.data !== undefined && !workers.data.items.some((worker) => worker.state === "ACTIVE"))
    items.push({ id: "no worker", tone: "failed", rank: 0, at: undefined, what: <>No worker is there</>, why: `${plural(waits, "task")} ${waits === 1 ? "waits" : "wait"} for one`, action: <Link className="button small" href="/settings/workers">Workers</Link> });
  const held = new Set(quarantine.data?.items.map((item) => item.asset_key));
  for (const asset of assets.data?.pages[0]?.items ?? []) {
    const status = statusOf(knownOf(asset));
    if (held.has(asset.asset_key)) continue;
    if (status.tone === "running" || status.tone === "queued") continue;
    const run = asset.health?.last_failure_run_id ?? undefined;
    const failed = status.tone === "failed" && run !== undefined;
    items.push({
      id: asset.asset_key,
      tone: status.tone,
      rank: failed ? 1 : asset.late_since != null ? 2 : 3,
      at: failed ? (asset.health?.last_failure_at ?? undefined) : (asset.late_since ?? asset.health?.last_check_at ?? undefined),
      what: (
        <Link href={assetHref(asset.asset_key)} className="mono">
          {dotted(asset.asset_key)}
        </Link>
      ),
      why: status.word.toLowerCase() === "failed" ? status.why : `${status.word.toLowerCase()}: ${status.why}`,
      action: failed ? (
        <>
          <Link className="button small" href={runHref(run)}>
            See why
          </Link>
          <Act
            needs="runs.retry"
            className="button small"
            disabled={retry.isPending}
            onClick={() => {
              retry.mutate(run);
            }}
          >
            Retry
          </Act>
        </>
      ) : (
        <Act
          needs="runs.trigger"
          className="button small"
          onClick={() => {
            materializeStore.open({ selection: dotted(asset.asset_key) });
          }}
        >
          Materialize…
        </Act>
      ),
    });
  }
  const waiting = quarantine.data?.items ?? [];
  for (const item of waiting.slice(0, 5))
    items.push({ id: item.materialization_id, tone: "blocked", rank: 3, at: item.quarantined_at, what: <span className="mono">{dotted(item.asset_key)}{item.partition == null ? "" : `[${item.partition}]`}</span>, why: "a check blocked it; it waits for review", action: <Link className="button small" href="/quarantine">Review…</Link> });
  for (const schedule of schedules.data?.items ?? [])
    if (schedule.status === "ERROR" || (schedule.failures ?? 0) > 0)
      items.push({ id: schedule.schedule_id, tone: "failed", rank: 1, at: schedule.last_scheduled_for ?? undefined, what: <Link href={`/automation/schedules/${encodeURIComponent(schedule.name)}`}>schedule {schedule.name}</Link>, why: schedule.last_error ?? "its last ticks failed", action: <Link className="button small" href={`/automation/schedules/${encodeURIComponent(schedule.name)}`}>Open</Link> });
  for (const sensor of sensors.data?.items ?? [])
    if (sensor.status === "ERROR" || (sensor.failures ?? 0) > 0) {
      const href = `/automation/sensors/${encodeURIComponent(sensor.name)}`;
      items.push({ id: sensor.sensor_id, tone: "failed", rank: 1, at: sensor.last_evaluation_at ?? undefined, what: <Link href={href}>sensor {sensor.name}</Link>, why: firstLine(sensor.last_error) ?? "its last evaluations failed", action: <Link className="button small" href={href}>Open</Link> });
    }
  items.sort((a, b) => a.rank - b.rank || Date.parse(b.at ?? "0") - Date.parse(a.at ?? "0"));
  if (items.length === 0)
    return (
      <Panel label="Needs attention">
        <div className="row" style={{ padding: "10px 12px" }}>
          <Mark tone="succeeded" />
          <span>All is well: nothing failed, nothing is late, nothing waits for review.</span>
          {failures.data?.items[0] === undefined ? null : (
            <span className="muted">
              Last failure <Ago at={failures.data.items[0].finished_at ?? failures.data.items[0].created_at} />
            </span>
          )}
        </div>
      </Panel>
    );
  return (
    <Panel title={`Needs attention`} label="Needs attention" aside={<span className="muted">{plural(items.length, "thing")}</span>}>
      <ul className="attention">
        {items.slice(0, MOST_ITEMS).map((item) => (
          <li key={item.id}>
            <Mark tone={item.tone} label={item.tone} />
            <div className="what">
              {item.what} <span className="muted">{item.why}</span>
            </div>
            <span className="muted hide-small">
              <Ago at={item.at} />
            </span>
            <span className="row">{item.action}</span>
          </li>
        ))}
      </ul>
      {items.length > MOST_ITEMS ? (
        <p style={{ padding: 12, fontSize: 13 }}>
          <Link href="/assets?view=list&attention=true">All assets that need attention</Link>
        </p>
      ) : null}
    </Panel>
  );
}

function RunningNow() {
  const query = useQuery(someRunsQuery({ state: "RUNNING,QUEUED" }, 8));
  return (
      <Panel title="Running now" label="Running now">
        <Shown query={query} rows={1}>
          {({ items }) => (items.length === 0 ? <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>Nothing is running.</p> : <RunTable runs={items} />)}
        </Shown>
      </Panel>
  );
}

function NewestRuns() {
  const recent = useQuery(someRunsQuery({}, 6));
  return (
      <Panel title="Newest runs" label="Newest runs" aside={<Link href="/runs" className="away">All runs</Link>}>
        <Shown query={recent} rows={4}>
          {({ items }) => (items.length === 0 ? <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>No run was ever asked for.</p> : <RunTable runs={items} />)}
        </Shown>
      </Panel>
  );
}

const TONES: Record<string, Tone> = { SUCCEEDED: "succeeded", FAILED: "failed", RUNNING: "running", CANCELLED: "cancelled", CANCELLING: "cancelled" };

function RunTable({ runs }: { runs: readonly Run[] }) {
  const now = useNow();
  return (
    <ul className="attention">
      {runs.map((run) => (
        <li key={run.run_id}>
          <Mark tone={TONES[run.state] ?? "queued"} progress={progressOf(run)} label={run.state.toLowerCase()} />
          <div className="what ellipsis">
            <Link href={runHref(run.run_id)} className="mono">
              {run.selection == null || run.selection === "" ? run.run_key : run.selection}
            </Link>{" "}
            <span className="muted">{tasksText(run)}</span>
          </div>
          <span className="muted nowrap">{between(run.started_at ?? run.created_at, run.finished_at ?? undefined, now)}</span>
          <span className="muted nowrap hide-small">
            <Ago at={run.created_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function NextTicks() {
  const query = useQuery(schedulesQuery);
  return (
    <Panel title="Next ticks" label="Next ticks" aside={<Link href="/automation" className="away">Automation</Link>}>
      <Shown query={query} rows={3}>
        {({ items }) => {
          const next = items.filter((schedule) => schedule.status !== "PAUSED" && schedule.next_tick_at != null).sort((a, b) => ((a.next_tick_at ?? "") < (b.next_tick_at ?? "") ? -1 : 1));
          if (next.length === 0) return <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>No schedule will tick. Declare one with servo.schedule.</p>;
          return (
            <ul className="attention">
              {next.slice(0, 8).map((schedule) => (
                <li key={schedule.schedule_id}>
                  <Mark tone="queued" />
                  <div className="what ellipsis">
                    <Link href={`/automation/schedules/${encodeURIComponent(schedule.name)}`}>{schedule.name}</Link> <span className="muted mono">{schedule.cron}</span>
                  </div>
                  <span className="muted nowrap">
                    <Ago at={schedule.next_tick_at ?? undefined} />
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </Shown>
    </Panel>
  );
}
