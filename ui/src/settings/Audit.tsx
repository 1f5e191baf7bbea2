// Who did what to what, when, and whether it was allowed. Filters are in the address.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { auditQuery } from "../api/queries";
import { Needs } from "../parts/Act";
import { assetHref, plural, runHref } from "../parts/format";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { useDebounced } from "../parts/useDebounced";

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
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = [outcome, action, principal, subject, span].some((each) => each !== "");
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
        <select
          className="field"
          aria-label="Action"
          value={action}
          onChange={(event) => {
            setAction(event.target.value);
          }}
        >
          <option value="">Any action</option>
          {FAMILIES.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        <select
          className="field"
          aria-label="Outcome"
          value={outcome}
          onChange={(event) => {
            setOutcome(event.target.value);
          }}
        >
          <option value="">Allowed and refused</option>
          <option value="ALLOWED">Allowed</option>
          <option value="REFUSED">Refused</option>
        </select>
        <select
          className="field"
          aria-label="When"
          value={span}
          onChange={(event) => {
            setSpan(event.target.value);
          }}
        >
          <option value="">At any time</option>
          {SPANS.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </div>
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={8} /> : null}
      {query.isSuccess && items.length === 0 ? (
        isFiltered ? (
          <Empty title="Nobody did anything like that" />
        ) : (
          <Empty title="Nobody did anything yet">
            <p>Every change that somebody asks for is recorded here, also what was refused. In the terminal:</p>
            <pre>servo audit --refused</pre>
          </Empty>
        )
      ) : null}
      {items.length === 0 ? null : (
        <section className="panel scroll" tabIndex={0} role="group" aria-label="Audit">
          <table className="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>Did</th>
                <th>To</th>
                <th>Outcome</th>
                <th>More</th>
              </tr>
            </thead>
            <tbody>
              {items.map((act) => (
                <tr key={act.event_id}>
                  <td className="nowrap">
                    <Ago at={act.occurred_at} />
                  </td>
                  <td>
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
                  </td>
                  <td className="mono">{act.action}</td>
                  <td className="mono">
                    <Subject action={act.action} subject={act.subject} run={act.run_id ?? undefined} />
                  </td>
                  <td>
                    <State state={act.outcome} />
                  </td>
                  <td className="muted">
                    {act.message ?? act.detail ?? ""}
                    {act.omitted === undefined || act.omitted === 0 ? null : ` (and ${plural(act.omitted, "refusal")} before it that were not recorded)`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {query.hasNextPage ? (
        <div>
          <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older
          </button>
        </div>
      ) : null}
    </div>
  );
}

function Subject({ action, subject, run }: { action: string; subject: string; run: string | undefined }) {
  if (run !== undefined) return <Link href={runHref(run)}>{subject}</Link>;
  if (/^(partitions|quarantine|automation)\./.test(action) && /^[\w-]+\/[\w-]+$/.test(subject)) return <Link href={assetHref(subject)}>{subject}</Link>;
  return <>{subject}</>;
}
