// The health mark: whether the page hears from the server, and how full the workspace is.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { useConnection } from "../api/live";
import { admissionQuery, deploymentQuery, readinessQuery, versionQuery } from "../api/queries";
import { count } from "../parts/format";
import { Shown } from "../parts/Panel";
import { Mark, type Tone } from "../parts/State";
import { Ago } from "../parts/Time";

export function Health() {
  const connection = useConnection();
  const admission = useQuery(admissionQuery);
  const deployment = useQuery(deploymentQuery);
  const version = useQuery(versionQuery);
  const readiness = useQuery({ ...readinessQuery, refetchInterval: 15_000 });
  const wrong = (readiness.data?.checks ?? []).filter((check) => !check.ok);
  const [open, setOpen] = useState(false);
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
