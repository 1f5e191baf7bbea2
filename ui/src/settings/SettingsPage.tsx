// How full the workspace is, what is paused, settings, deployments, people and keys, and who did what.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { admissionQuery, settingsQuery, workersQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { ActionDialog, ReasonField } from "../parts/ActionDialog";
import { Coded } from "../parts/Coded";
import { Field } from "../parts/fields";
import { count, exactly, plural } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { Audit } from "./Audit";
import { Deployments } from "./Deployments";
import { Notifications } from "./Notifications";
import { People } from "./People";
import { queuesOf } from "./queues";

type Setting = Schemas["Setting"];
type Worker = Schemas["Worker"];

const TABS: [string, string][] = [
  ["admission", "Admission"],
  ["workers", "Workers"],
  ["settings", "Settings"],
  ["deployments", "Deployments"],
  ["notifications", "Notifications"],
  ["people", "People and keys"],
  ["audit", "Audit"],
];

export default function SettingsPage({ tab }: { tab: string }) {
  return (
    <div className="page stack">
      <PageHead title="Settings" />
      <nav className="tabs" aria-label="Settings">
        {TABS.map(([name, title]) => (
          <Link key={name} href={`/settings/${name}`} aria-current={tab === name ? "page" : undefined}>
            {title}
          </Link>
        ))}
      </nav>
      {tab === "admission" ? <Admission /> : null}
      {tab === "workers" ? <Workers /> : null}
      {tab === "settings" ? <Settings /> : null}
      {tab === "deployments" ? <Deployments /> : null}
      {tab === "notifications" ? <Notifications /> : null}
      {tab === "people" ? <People /> : null}
      {tab === "audit" ? <Audit /> : null}
      {TABS.some(([name]) => name === tab) ? null : <Empty title="There is no such page" />}
    </div>
  );
}

function Load({ name, value, most }: { name: string; value: number; most: number }) {
  return (
    <div className="figure" style={{ minWidth: 150 }}>
      <b>
        {count(value)} <span className="muted" style={{ fontSize: 13, fontWeight: 400 }}>of {count(most)}</span>
      </b>
      <span className="bar" role="img" aria-label={`${count(value)} of ${count(most)}`}>
        <i className="fill-running" style={{ width: `${String(Math.min(100, (value / Math.max(1, most)) * 100))}%` }} />
      </span>
      <span>{name}</span>
    </div>
  );
}

function Admission() {
  const query = useQuery(admissionQuery);
  const queries = useQueryClient();
  const [pauses, setPauses] = useState(false);
  const resume = useMutation({
    mutationFn: (scope: string) => answer(api.POST("/api/v1/pauses/resume", { params: { header: once() }, body: { scope: scope.replace("/", ".") } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["admission"] });
      toast("Dispatching goes on");
    },
    onError: toastError,
  });
  return (
    <Shown query={query}>
      {(data) => (
        <div className="stack">
          <Panel title="How full it is" label="How full it is">
            <div className="body figures">
              <Load name="runs at work" value={data.runs_at_work} most={data.max_concurrent_runs} />
              <Load name="runs queued" value={data.runs_queued} most={data.max_queued_runs} />
              <Load name="tasks running or dispatched" value={data.tasks_running + data.tasks_dispatched} most={data.max_concurrent_tasks} />
              <div className="figure">
                <b>{count(data.tasks_waiting)}</b>
                <span>tasks that wait for a slot</span>
              </div>
            </div>
          </Panel>
          <Panel
            title="Pauses"
            label="Pauses"
            aside={
              <>
                <span className="grow" />
                <Act
                  needs="admission.change"
                  className="button small"
                  onClick={() => {
                    setPauses(true);
                  }}
                >
                  Pause…
                </Act>
              </>
            }
          >
            {data.paused.length === 0 ? <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>Nothing is paused.</p> : null}
            <ul className="attention">
              {data.paused.map((pause) => (
                <li key={pause.scope}>
                  <State state="PAUSED" word={pause.scope} />
                  <span className="what muted">
                    {pause.reason ?? ""} by {pause.paused_by}, <Ago at={pause.paused_at} />
                  </span>
                  <Act
                    needs="admission.change"
                    className="button small"
                    disabled={resume.isPending}
                    onClick={() => {
                      resume.mutate(pause.scope);
                    }}
                  >
                    Resume {pause.scope === "all" ? "everything" : pause.scope}
                  </Act>
                </li>
              ))}
            </ul>
          </Panel>
          <Panel title="Pools" label="Pools">
            {(data.pools ?? []).length === 0 ? (
              <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>
                No pool has a limit or tasks at work. Assets name theirs with <code>pool=</code>; setting <code>pool.NAME</code> limits it.
              </p>
            ) : (
              <div className="body figures">
                {(data.pools ?? []).map((pool) => (
                  <Load key={pool.name} name={pool.name} value={pool.tasks_at_work} most={pool.limit ?? pool.tasks_at_work} />
                ))}
              </div>
            )}
          </Panel>
          {pauses ? (
            <PauseDialog
              onClose={() => {
                setPauses(false);
              }}
            />
          ) : null}
        </div>
      )}
    </Shown>
  );
}

const WORKER_STATES: Record<string, string> = { ACTIVE: "SUCCEEDED", DRAINING: "PAUSED", LOST: "FAILED", GONE: "SKIPPED", LEFT: "SKIPPED" };

const WORKER_WORDS: Record<string, string> = { ACTIVE: "Active", DRAINING: "Draining", LOST: "Lost", GONE: "Gone", LEFT: "Left" };

const WORKERS: Column<Worker>[] = [
  { head: "State", cell: (worker) => <State state={WORKER_STATES[worker.state] ?? "QUEUED"} word={WORKER_WORDS[worker.state] ?? worker.state.toLowerCase()} /> },
  { head: "Worker", className: "mono", title: (worker) => worker.worker_id, cell: (worker) => worker.name },
  { head: "Queues", cell: (worker) => worker.queues.join(", ") },
  { head: "Slots", className: "right", cell: (worker) => count(worker.slots) },
  { head: "Running", className: "right", cell: (worker) => count(worker.running) },
  {
    head: "Code",
    className: "nowrap",
    cell: (worker) => (
      <>
        #{worker.deployment} {worker.is_current ? "" : <span style={{ color: "var(--stale)" }}>older than deployed</span>}
      </>
    ),
  },
  { head: "Host", className: "muted", cell: (worker) => `${worker.host}, ${worker.version}` },
  { head: "Last heard of", className: "nowrap", cell: (worker) => <Ago at={worker.heard_at} /> },
];

function Workers() {
  const query = useQuery(workersQuery);
  return (
    <Shown query={query} rows={4}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title="No worker is there">
            <p>servo dev has one of its own. Others come with:</p>
            <pre>servo worker --server URL</pre>
          </Empty>
        ) : (
          <div className="stack">
            <Panel title="Queues" label="Queues">
              <div className="body figures">
                {queuesOf(items).map((queue) => (
                  <Load key={queue.name} name={`${queue.name}: ${plural(queue.workers, "worker")}, ${plural(queue.slots - queue.running, "free slot")}`} value={queue.running} most={queue.slots} />
                ))}
                {queuesOf(items).length === 0 ? <p className="muted">No worker takes tasks: none of them is active.</p> : null}
              </div>
            </Panel>
            <section className="panel">
              <Table label="Workers" items={items} columns={WORKERS} id={(worker) => worker.worker_id} />
            </section>
          </div>
        )
      }
    </Shown>
  );
}

function PauseDialog({ onClose }: { onClose: () => void }) {
  const [scope, setScope] = useState("all");
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const pause = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/pauses", { params: { header: once() }, body: { scope, reason } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["admission"] });
      toast(`Paused: ${scope}`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title="Pause dispatching"
      onClose={onClose}
      action={`Pause ${scope === "all" ? "everything" : scope}`}
      onAct={() => {
        pause.mutate();
      }}
      change={pause}
      disabled={scope === ""}
      isDangerous
    >
      <p>No task of it is handed out until it is resumed. What workers are at goes on, and runs may still be asked for.</p>
      <Field label="Scope" isMono value={scope} placeholder="all, queue:default, asset:raw.flights" onChange={setScope} />
      <ReasonField value={reason} onChange={setReason} />
    </ActionDialog>
  );
}

function Settings() {
  const query = useQuery(settingsQuery);
  const [edited, setEdited] = useState<Setting | undefined>();
  const columns: Column<Setting>[] = [
    { head: "Setting", className: "mono", cell: (setting) => (setting.name.endsWith(".") ? `${setting.name}NAME` : setting.name) },
    { head: "Value", className: "right nowrap", cell: (setting) => groupedText(setting.text) },
    { head: "Default", className: "right nowrap muted", cell: (setting) => groupedText(setting.default) },
    { head: "Origin", className: "nowrap muted", title: (setting) => (setting.changed_at == null ? undefined : exactly(setting.changed_at)), cell: (setting) => `${setting.origin.toLowerCase()}${setting.changed_by == null ? "" : `, ${setting.changed_by}`}` },
    { head: "About", className: "muted", cell: (setting) => <Coded text={setting.about} /> },
    {
      head: <span className="sr">Change</span>,
      cell: (setting) =>
        setting.name.endsWith(".") ? null : (
          <Act
            needs="settings.change"
            className="button small"
            aria-label={`Change ${setting.name}`}
            onClick={() => {
              setEdited(setting);
            }}
          >
            Change…
          </Act>
        ),
    },
  ];
  return (
    <section className="panel">
      <Shown query={query} rows={10}>
        {(data) => <Table label="Settings" items={data.items} columns={columns} id={(setting) => setting.name} />}
      </Shown>
      {edited === undefined ? null : (
        <SettingDialog
          setting={edited}
          onClose={() => {
            setEdited(undefined);
          }}
        />
      )}
    </section>
  );
}

/** A value as the server writes it, with numbers grouped. */
const groupedText = (text: string) => (/^\d+$/.test(text) ? count(Number(text)) : text);

function SettingDialog({ setting, onClose }: { setting: Setting; onClose: () => void }) {
  const [text, setText] = useState(setting.text);
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (unset: boolean) => answer(api.PATCH("/api/v1/settings", { params: { header: once() }, body: unset ? { unset: [setting.name] } : { set: { [setting.name]: text } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["settings"] });
      toast(`${setting.name} is changed`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title={setting.name}
      onClose={onClose}
      action={`Change to ${text}`}
      onAct={() => {
        change.mutate(false);
      }}
      change={change}
      disabled={text === setting.text}
      others={
        <>
          <button
            type="button"
            className="button"
            disabled={change.isPending}
            onClick={() => {
              change.mutate(true);
            }}
          >
            Back to {setting.default}
          </button>
          <span className="grow" />
        </>
      }
    >
      <p>
        <Coded text={setting.about} />
      </p>
      <Field label={`Value, from ${setting.least} to ${setting.most}`} value={text} onChange={setText} />
    </ActionDialog>
  );
}
