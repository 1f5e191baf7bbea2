// Who did what to what, when, and whether it was allowed. Filters are in the address.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { auditQuery } from "../api/queries";
import { Needs } from "../parts/Act";
import { assetHref, plural, runHref } from "../parts/format";
import { Choose } from "../parts/fields";
import { Empty } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { useDebounced } from "../parts/useDebounced";

type Entry = Schemas["Act"];

/** Families of actions, as the server names them, in words. */
const FAMILIES: [string, string][] = [
  ["run", "Runs"],
  ["backfill", "Backfills"],
  ["assets", "Deployments"],
  ["partitions", "Partitions"],
  ["quarantine", "Reviews"],
  ["schedule", "Schedules"],
  ["sensor", "Sensors"],
  ["automation", "Conditions"],
  ["notification", "Notifications"],
  ["dispatch", "Pauses"],
  ["settings", "Settings"],
  ["retention", "Retention"],
];
const SPANS: [string, string, number][] = [
  ["hour", "Last hour", 3_600_000],
  ["day", "Last 24 hours", 86_400_000],
  ["week", "Last 7 days", 7 * 86_400_000],
  ["month", "Last 30 days", 30 * 86_400_000],
];
const STEP_MS = 60_000;

export function Audit() {
  return (
    <Needs permission="audit.read" what="The audit">
      <Acts />
    </Needs>
  );
}

function Acts() {
  const [outcome, setOutcome] = useParam("outcome");
  const [action, setAction] = useParam("action");
  const [principal, setPrincipal] = useParam("who");
  const [subject, setSubject] = useParam("subject");
  const [span, setSpan] = useParam("span");
  const length = SPANS.find(([name]) => name === span)?.[2];
  // To the minute, so that the same question is asked until it has another answer.
  const since = length === undefined ? "" : new Date(Math.floor((Date.now() - length) / STEP_MS) * STEP_MS).toISOString();
  const query = useInfiniteQuery(auditQuery({ outcome, action, principal: useDebounced(principal, 250), subject: useDebounced(subject, 250), since }));
  const isFiltered = [outcome, action, principal, subject, span].some((each) => each !== "");
  const columns: Column<Entry>[] = [
    { head: "When", className: "nowrap", cell: (act) => <Ago at={act.occurred_at} /> },
    {
      head: "Who",
      cell: (act) => (
        <button
          type="button"
          className="link"
          title="Only what this one did"
          onClick={() => {
            setPrincipal(act.principal);
          }}
        >
          {act.principal}
        </button>
      ),
    },
    { head: "Did", className: "mono", cell: (act) => act.action },
    { head: "To", className: "mono", cell: (act) => <Subject action={act.action} subject={act.subject} run={act.run_id ?? undefined} /> },
    { head: "Outcome", cell: (act) => <State state={act.outcome} /> },
    {
      head: "More",
      className: "muted",
      cell: (act) => (
        <>
          {act.message ?? act.detail ?? ""}
          {act.omitted === undefined || act.omitted === 0 ? null : ` (and ${plural(act.omitted, "refusal")} before it that were not recorded)`}
        </>
      ),
    },
  ];
  return (
    <div className="stack">
      <div className="row wrap" role="search" aria-label="Filters of the audit">
        <input
          className="field"
          data-search
          aria-label="Who"
          placeholder="Who: user:local, a key…"
          value={principal}
          onChange={(event) => {
            setPrincipal(event.target.value);
          }}
        />
        <input
          className="field mono"
          aria-label="To what"
          placeholder="To: a run, an asset…"
          value={subject}
          onChange={(event) => {
            setSubject(event.target.value);
          }}
        />
        <Choose label="Action" value={action} choices={[["", "Any action"], ...FAMILIES]} onChange={setAction} />
        <Choose
          label="Outcome"
          value={outcome}
          choices={[
            ["", "Allowed and refused"],
            ["ALLOWED", "Allowed"],
            ["REFUSED", "Refused"],
          ]}
          onChange={setOutcome}
        />
        <Choose label="When" value={span} choices={[["", "At any time"], ...SPANS.map(([name, title]): [string, string] => [name, title])]} onChange={setSpan} />
      </div>
      <Paged
        query={query}
        rows={8}
        empty={
          isFiltered ? (
            <Empty title="Nobody did anything like that" />
          ) : (
            <Empty title="Nobody did anything yet">
              <p>Every change that somebody asks for is recorded here, also what was refused. In the terminal:</p>
              <pre>servo audit --refused</pre>
            </Empty>
          )
        }
      >
        {(items) => (
          <section className="panel">
            <Table label="Audit" items={items} columns={columns} id={(act) => act.event_id} />
          </section>
        )}
      </Paged>
    </div>
  );
}

function Subject({ action, subject, run }: { action: string; subject: string; run: string | undefined }) {
  if (run !== undefined) return <Link href={runHref(run)}>{subject}</Link>;
  if (/^(partitions|quarantine|automation)\./.test(action) && /^[\w-]+\/[\w-]+$/.test(subject)) return <Link href={assetHref(subject)}>{subject}</Link>;
  return <>{subject}</>;
}
