// One sensor: what it saw and why it asked for runs or did not, how far it has come, and a look before anything happens.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { evalPagesQuery, sensorQuery } from "../api/queries";
import { assetHref, count, exactly, plural, runHref, shortRun, slashed } from "../parts/format";
import { Choose } from "../parts/fields";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, Shown } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { watchText } from "./AutomationPage";
import { EvaluateDialog } from "./EvaluateDialog";
import { PushDialog, ResetCursorDialog } from "./SensorDialogs";
import { useToggle } from "./useToggle";
import { Act } from "../parts/Act";

type Sensor = Schemas["Sensor"];

export default function SensorPage({ name }: { name: string }) {
  const query = useQuery(sensorQuery(name));
  return (
    <div className="page">
      <Shown query={query} rows={8}>
        {(sensor) => <Detail sensor={sensor} />}
      </Shown>
    </div>
  );
}

function Detail({ sensor }: { sensor: Sensor }) {
  const { isOn, toggle, isPending } = useToggle({ ...sensor, kind: "sensor" });
  const [open, setOpen] = useState<"evaluate" | "push" | "reset" | undefined>();
  const close = () => {
    setOpen(undefined);
  };
  return (
    <div className="stack">
      <PageHead
        of={["/automation", "Automation"]}
        title={sensor.name}
        actions={
          <>
            <Act needs="automation.operate" className="button" disabled={isPending} onClick={() => { toggle(); }}>
              {isOn ? "Pause" : "Resume"}
            </Act>
            {sensor.kind === "push" ? (
              <Act
                needs="automation.operate"
                className="button"
                disabled={sensor.verifies}
                title={sensor.verifies === true ? "It takes signed messages only; a dry run shows what one would do" : undefined}
                onClick={() => {
                  setOpen("push");
                }}
              >
                Send a message…
              </Act>
            ) : null}
            <Act
              needs="runs.trigger"
              className="button primary"
              onClick={() => {
                setOpen("evaluate");
              }}
            >
              Dry run…
            </Act>
          </>
        }
      >
        <span className="chip">sensor</span>
        <State state={sensor.status} />
      </PageHead>
      {sensor.description == null ? null : <p style={{ maxWidth: "80ch" }}>{sensor.description}</p>}
      {sensor.last_error == null ? null : (
        <div className="problem">
          <strong>{(sensor.failures ?? 0) > 1 ? `The last ${count(sensor.failures ?? 0)} evaluations failed` : "The last evaluation failed"}</strong>
          <pre>{sensor.last_error}</pre>
        </div>
      )}
      <div className="columns">
        <History sensor={sensor} />
        <div className="stack">
          <Panel
            title="Cursor"
            label="Cursor"
            aside={
              <>
                <span className="grow" />
                <Act needs="automation.operate"
                 
                  className="button small"
                  onClick={() => {
                    setOpen("reset");
                  }}
                >
                  Reset…
                </Act>
              </>
            }
          >
            <div className="body">{sensor.cursor == null ? <span className="muted">None: it has not come anywhere yet, or keeps no place.</span> : <pre style={{ maxHeight: 160, overflow: "auto" }} tabIndex={0}>{sensor.cursor}</pre>}</div>
          </Panel>
          <Panel title="Definition" label="Definition">
            <Facts sensor={sensor} />
          </Panel>
        </div>
      </div>
      {open === "evaluate" ? <EvaluateDialog sensor={sensor} onClose={close} /> : null}
      {open === "push" ? <PushDialog sensor={sensor} onClose={close} /> : null}
      {open === "reset" ? <ResetCursorDialog sensor={sensor} onClose={close} /> : null}
    </div>
  );
}

function Facts({ sensor }: { sensor: Sensor }) {
  const facts: [string, ReactNode][] = [
    ["Looks", watchText(sensor)],
    ["Asks for", <span key="asks" className="mono">{sensor.selection ?? "what its function says"}</span>],
    ["Function", <span key="function" className="mono">{sensor.function ?? "none: it asks for its selection"}</span>],
    ...((sensor.on ?? []).length > 0
      ? [["Assets", (sensor.on ?? []).map((asset) => <div key={asset}><Link href={assetHref(slashed(asset))} className="mono">{asset}</Link></div>)] as [string, ReactNode]]
      : []),
    ["Last look", <Ago key="last" at={sensor.last_evaluation_at ?? undefined} />],
    ...(sensor.kind === "poll" ? [["Next look", <Ago key="next" at={sensor.next_evaluation_at ?? undefined} />] as [string, ReactNode]] : []),
    ...(sensor.kind === "poll" ? [] : [["Messages", `${plural(sensor.messages_waiting ?? 0, "message")} waiting${(sensor.messages_dropped ?? 0) > 0 ? `, ${count(sensor.messages_dropped ?? 0)} dropped` : ""}`] as [string, ReactNode]]),
    ...(sensor.kind === "push" ? [["Messages are", sensor.verifies === true ? "verified by a secret" : "taken from this server's users"] as [string, ReactNode]] : []),
    ["Defined by", sensor.origin],
  ];
  return (
    <dl className="facts body">
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A reason; of a failure its first line, and the rest when it is asked for. */
function Why({ text, failed }: { text: string; failed: boolean }) {
  const end = text.indexOf("\n");
  if (!failed || end < 0) return <span className={failed ? undefined : "muted"} style={failed ? { color: "var(--failed)" } : undefined}>{text}</span>;
  return (
    <details>
      <summary style={{ color: "var(--failed)" }}>{text.slice(0, end)}</summary>
      <pre style={{ maxHeight: 200, overflow: "auto" }} tabIndex={0}>{text.slice(end + 1)}</pre>
    </details>
  );
}

const OUTCOMES: [string, string][] = [
  ["", "Any outcome"],
  ["TRIGGERED", "Triggered"],
  ["NO_NEW_DATA", "No new data"],
  ["FAILED", "Failed"],
  ["STALE", "Stale"],
];

const EVALUATIONS: Column<Schemas["SensorEval"]>[] = [
  {
    head: "When",
    className: "nowrap",
    title: (each) => exactly(each.evaluated_at),
    cell: (each) => (
      <>
        <Ago at={each.evaluated_at} /> {each.manual === true ? <span className="chip">by hand</span> : null} {each.attempt > 1 ? <span className="chip">try {each.attempt}</span> : null}
      </>
    ),
  },
  { head: "Result", cell: (each) => <State state={each.status} /> },
  {
    head: "Runs",
    className: "mono nowrap",
    cell: ({ runs = [] }) => (
      <>
        {runs.length === 0 ? "–" : null}
        {runs.slice(0, 3).map((run) => (
          <div key={run.run_id}>
            <Link href={runHref(run.run_id)}>{shortRun(run.run_id)}</Link>
          </div>
        ))}
        {runs.length > 3 ? <span className="muted">and {runs.length - 3} more</span> : null}
      </>
    ),
  },
  {
    head: "Why",
    cell: (each) => (
      <>
        <Why text={each.reason ?? ""} failed={each.status === "FAILED"} />
        {each.retry_at == null ? null : (
          <div className="muted">
            tried again <Ago at={each.retry_at} />
          </div>
        )}
        {each.output == null || each.output === "" ? null : (
          <details>
            <summary className="muted">Output</summary>
            <pre style={{ maxHeight: 160, overflow: "auto" }} tabIndex={0}>{each.output}</pre>
          </details>
        )}
      </>
    ),
  },
  { head: "Cursor after", className: "mono muted clip", title: (each) => each.cursor_after ?? undefined, cell: (each) => (each.cursor_after == null || each.cursor_after === each.cursor_before ? "–" : each.cursor_after) },
];

function History({ sensor }: { sensor: Sensor }) {
  const [status, setStatus] = useParam("status");
  const query = useInfiniteQuery(evalPagesQuery(sensor.name, status));
  return (
    <Panel
      title="Evaluations"
      label="Evaluations"
      aside={
        <>
          <span className="grow" />
          <Choose label="Outcome" isSmall value={status} choices={OUTCOMES} onChange={setStatus} />
        </>
      }
    >
      <Paged
        query={query}
        isInPanel
        empty={
          <Empty title={status === "" ? "Not evaluated yet" : "No evaluation ended like that"}>
            <p>Every evaluation is listed here, with the runs that it asked for or why it asked for none.</p>
          </Empty>
        }
      >
        {(items) => <Table label="Table of evaluations" items={items} columns={EVALUATIONS} id={(each) => each.eval_id} />}
      </Paged>
    </Panel>
  );
}
