// The health mark: whether the page hears from the server, and how full the workspace is.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useConnection } from "../api/live";
import { admissionQuery, deploymentQuery, readinessQuery, someRunsQuery, tablesQuery, versionQuery, workersQuery } from "../api/queries";
import { count, plural, runHref } from "../parts/format";
import { Shown } from "../parts/Panel";
import { Mark, type Tone } from "../parts/State";
import { Ago } from "../parts/Time";
import { queuesOf } from "../settings/queues";

export function Health() {
  const connection = useConnection();
  const admission = useQuery(admissionQuery);
  const deployment = useQuery(deploymentQuery);
  const version = useQuery(versionQuery);
  const readiness = useQuery({ ...readinessQuery, refetchInterval: 15_000 });
  const wrong = (readiness.data?.checks ?? []).filter((check) => !check.ok);
  const [open, setOpen] = useState(false);
  // What only the open box shows is asked for when it is.
  const workers = useQuery({ ...workersQuery, enabled: open });
  const tables = useQuery({ ...tablesQuery, enabled: open });
  const failures = useQuery({ ...someRunsQuery({ state: "FAILED" }, 1), enabled: open });
  const queues = queuesOf(workers.data?.items ?? []);
  const failed = failures.data?.items[0];
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === "Escape" : event.target instanceof Node && box.current?.contains(event.target) === false) setOpen(false);
    };
    window.addEventListener("mousedown", away);
    window.addEventListener("keydown", away);
    return () => {
      window.removeEventListener("mousedown", away);
      window.removeEventListener("keydown", away);
    };
  }, [open]);
  const paused = admission.data?.paused ?? [];
  const [tone, word]: [Tone, string] =
    connection === "reconnecting" ? ["retry", "reconnecting"] : connection === "connecting" ? ["queued", "connecting"] : wrong.length > 0 ? ["stale", "degraded"] : paused.length > 0 ? ["stale", "paused"] : ["succeeded", "healthy"];
  return (
    <div ref={box}>
      <button
        type="button"
        className="button quiet small"
        aria-expanded={open}
        onClick={() => {
          setOpen(!open);
        }}
      >
        <Mark tone={tone} />
        <span role="status" style={{ minWidth: 78, textAlign: "left" }}>
          {word}
        </span>
      </button>
      {open ? (
        <div className="popover" role="dialog" aria-label="Health">
          {connection === "reconnecting" ? <p className="notice">The server does not answer. The page shows what it last knew and catches up by itself.</p> : null}
          {wrong.map((check) => (
            <p key={check.name} className="notice">
              {check.name}: {check.reason ?? "not well"}
            </p>
          ))}
          <Shown query={admission} rows={4}>
            {(data) => (
              <dl className="facts">
                <dt>Runs</dt>
                <dd>
                  {count(data.runs_at_work)} of {count(data.max_concurrent_runs)} at work, {count(data.runs_queued)} queued
                </dd>
                <dt>Tasks</dt>
                <dd>
                  {count(data.tasks_running)} running, {count(data.tasks_dispatched)} dispatched, {count(data.tasks_waiting)} waiting
                </dd>
                <dt>Queues</dt>
                <dd>
                  {queues.length === 0 ? "no worker is there" : null}
                  {queues.map((queue) => (
                    <div key={queue.name}>
                      <span className="mono">{queue.name}</span> {plural(queue.slots - queue.running, "free slot")} of {count(queue.slots)}, {plural(queue.workers, "worker")}
                    </div>
                  ))}
                </dd>
                <dt>Tables</dt>
                <dd>{tables.data === undefined ? "–" : <>hold the log up to batch {count(tables.data.last_seq)}</>}</dd>
                <dt>Last failure</dt>
                <dd>
                  {failed === undefined ? (
                    "none"
                  ) : (
                    <Link
                      href={runHref(failed.run_id)}
                      onClick={() => {
                        setOpen(false);
                      }}
                    >
                      <span className="mono">{failed.selection ?? failed.run_key}</span>, <Ago at={failed.finished_at ?? failed.created_at} />
                    </Link>
                  )}
                </dd>
                <dt>Paused</dt>
                <dd>{paused.length === 0 ? "nothing" : paused.map((each) => each.scope).join(", ")}</dd>
                <dt>Deployment</dt>
                <dd>
                  {deployment.data === undefined ? (
                    "none yet"
                  ) : (
                    <>
                      {deployment.data.project} #{deployment.data.number}, <Ago at={deployment.data.deployed_at} />
                    </>
                  )}
                </dd>
                <dt>Version</dt>
                <dd>{version.data?.version ?? "–"}</dd>
              </dl>
            )}
          </Shown>
          <Link
            href="/settings"
            className="button small"
            onClick={() => {
              setOpen(false);
            }}
          >
            Open settings
          </Link>
        </div>
      ) : null}
    </div>
  );
}
