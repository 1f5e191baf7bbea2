// How full the workspace is, what is paused, settings, deployments, people and keys, and who did what.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { admissionQuery, settingsQuery, workersQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { Dialog } from "../parts/Dialog";
import { count, exactly } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { Audit } from "./Audit";
import { Deployments } from "./Deployments";
import { Notifications } from "./Notifications";
import { People } from "./People";

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
      <div className="page-head" style={{ margin: 0 }}>
        <h1>Settings</h1>
      </div>
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

function Workers() {
  const query = useQuery(workersQuery);
  return (
    <section className="panel scroll">
      <Shown query={query} rows={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No worker is there">
              <p>servo dev has one of its own. Others come with:</p>
              <pre>servo worker --server URL</pre>
            </Empty>
          ) : (
            <table className="table">
              <thead>
                <tr>
                  <th>State</th>
                  <th>Worker</th>
                  <th>Queues</th>
                  <th className="right">Slots</th>
                  <th className="right">Running</th>
                  <th>Code</th>
                  <th>Host</th>
                  <th>Last heard of</th>
                </tr>
              </thead>
              <tbody>
                {items.map((worker) => (
                  <tr key={worker.worker_id}>
                    <td>
                      <State state={WORKER_STATES[worker.state] ?? "QUEUED"} word={worker.state.toLowerCase()} />
                    </td>
                    <td className="mono" title={worker.worker_id}>
                      {worker.name}
                    </td>
                    <td>{worker.queues.join(", ")}</td>
                    <td className="right">{count(worker.slots)}</td>
                    <td className="right">{count(worker.running)}</td>
                    <td>
                      #{worker.deployment} {worker.is_current ? "" : <span style={{ color: "var(--stale)" }}>older than deployed</span>}
                    </td>
                    <td className="muted">
                      {worker.host}, {worker.version}
                    </td>
                    <td>
                      <Ago at={worker.heard_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Shown>
    </section>
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
    <Dialog title="Pause dispatching" onClose={onClose}>
      <div className="content">
        <p>No task of it is handed out until it is resumed. What workers are at goes on, and runs may still be asked for.</p>
        <label className="line">
          Scope
          <input
            className="field mono"
            value={scope}
            placeholder="all, queue:default, asset:raw.flights"
            onChange={(event) => {
              setScope(event.target.value);
            }}
          />
        </label>
        <label className="line">
          Reason
          <input
            className="field"
            value={reason}
            onChange={(event) => {
              setReason(event.target.value);
            }}
          />
        </label>
        {pause.error === null ? null : <ProblemBox error={pause.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button danger"
          disabled={pause.isPending || scope === ""}
          onClick={() => {
            pause.mutate();
          }}
        >
          Pause {scope === "all" ? "everything" : scope}
        </button>
      </footer>
    </Dialog>
  );
}

function Settings() {
  const query = useQuery(settingsQuery);
  const [edited, setEdited] = useState<Schemas["Setting"] | undefined>();
  return (
    <section className="panel scroll">
      <Shown query={query} rows={10}>
        {(data) => (
          <table className="table">
            <thead>
              <tr>
                <th>Setting</th>
                <th className="right">Value</th>
                <th className="right">Default</th>
                <th>Origin</th>
                <th>About</th>
                <th>
                  <span className="sr">Change</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((setting) => (
                <tr key={setting.name}>
                  <td className="mono">{setting.name}</td>
                  <td className="right nowrap">{setting.text}</td>
                  <td className="right nowrap muted">{setting.default}</td>
                  <td className="nowrap muted" title={setting.changed_at == null ? undefined : exactly(setting.changed_at)}>
                    {setting.origin.toLowerCase()}
                    {setting.changed_by == null ? "" : `, ${setting.changed_by}`}
                  </td>
                  <td className="muted">{setting.about}</td>
                  <td>
                    {setting.name.endsWith(".") ? null : (
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
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
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

function SettingDialog({ setting, onClose }: { setting: Schemas["Setting"]; onClose: () => void }) {
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
    <Dialog title={setting.name} onClose={onClose}>
      <div className="content">
        <p>{setting.about}</p>
        <label className="line">
          Value, from {setting.least} to {setting.most}
          <input
            className="field"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
            }}
          />
        </label>
        {change.error === null ? null : <ProblemBox error={change.error} />}
      </div>
      <footer>
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
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button primary"
          disabled={change.isPending || text === setting.text}
          onClick={() => {
            change.mutate(false);
          }}
        >
          Change to {text}
        </button>
      </footer>
    </Dialog>
  );
}
