// Which rule makes an asset by itself, what it sees now part by part, and what it did.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { conditionEvaluationsQuery, conditionQuery } from "../api/queries";
import { count, plural, runHref, shortRun } from "../parts/format";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { Mark, State } from "../parts/State";
import { Ago } from "../parts/Time";
import { Act } from "../parts/Act";
import { Paged } from "../parts/Table";
import { useToggle } from "./useToggle";

type Trace = Schemas["Trace"];

export function ConditionPanel({ asset, isThere }: { asset: string; isThere: boolean }) {
  const query = useQuery({ ...conditionQuery(asset), enabled: isThere });
  const { isOn, toggle, isPending } = useToggle({ kind: "condition", name: asset, status: query.data?.status ?? "ACTIVE", state_version: query.data?.state_version ?? 0 });
  if (!isThere)
    return (
      <Panel title="Condition" label="Condition">
        <Empty title="It has no condition">
          <p>With a condition an asset is made by itself, when what it reads has changed:</p>
          <pre>@servo.asset(automation=servo.eager())</pre>
        </Empty>
      </Panel>
    );
  if (query.isPending) return <Skeleton rows={3} />;
  if (query.data === undefined) return <ProblemBox error={query.error} again={() => void query.refetch()} />;
  const { data } = query;
  return (
    <>
      <Panel
        title="Condition"
        label="Condition"
        aside={
          <>
            <State state={data.status} />
            <span className="grow" />
            <Act needs="automation.operate" className="button small" disabled={isPending} onClick={() => { toggle(); }}>
              {isOn ? "Pause" : "Resume"}
            </Act>
          </>
        }
      >
        <div className="body stack" style={{ gap: 10 }}>
          <pre>{data.condition}</pre>
          {data.last_error == null ? null : (
            <div className="problem">
              <strong>Its last request failed</strong>
              <span>{data.last_error}</span>
            </div>
          )}
          <div role="group" aria-label="What it sees now">
            <p className="muted" style={{ fontSize: 13 }}>
              Now, of {plural(data.looked_at, "partition")}
              {data.last_requested_at == null ? "" : ", last asked "}
              {data.last_requested_at == null ? null : <Ago at={data.last_requested_at} />}
              {data.last_run_id == null ? null : (
                <>
                  {" for "}
                  <Link href={runHref(data.last_run_id)} className="mono">
                    {shortRun(data.last_run_id)}
                  </Link>
                </>
              )}
              :
            </p>
            <ul className="trace">
              <Part trace={data.trace} />
            </ul>
          </div>
          {data.partitions.some((each) => each.held_back != null) ? (
            <ul className="attention" aria-label="What holds partitions back">
              {data.partitions
                .filter((each) => each.held_back != null)
                .slice(0, 10)
                .map((each) => (
                  <li key={each.partition ?? ""}>
                    <Mark tone={each.holds ? "queued" : "missing"} label={each.holds ? "holds" : "does not hold"} />
                    <span className="mono">{each.partition ?? "the asset"}</span>
                    <span className="what muted">{each.held_back}</span>
                  </li>
                ))}
            </ul>
          ) : null}
        </div>
      </Panel>
      <Evaluations asset={asset} />
    </>
  );
}

/** A part of a condition: for how many it is true, since when, and its own parts. */
function Part({ trace }: { trace: Trace }) {
  const [tone, text] = trace.holds === 0 ? (["missing", "not true"] as const) : trace.holds === trace.of ? (["succeeded", "true"] as const) : (["queued", `true of ${count(trace.holds)} of ${count(trace.of)}`] as const);
  return (
    <li>
      <div className="row wrap">
        <Mark tone={tone} label={text} />
        <span className="mono">{trace.label}</span>
        <span className="muted">
          {trace.of > 1 ? `${count(trace.holds)} of ${count(trace.of)}` : text}
          {trace.since == null ? null : (
            <>
              , since <Ago at={trace.since} />
            </>
          )}
        </span>
      </div>
      {(trace.parts ?? []).length === 0 ? null : (
        <ul>
          {(trace.parts ?? []).map((part, index) => (
            <Part key={index} trace={part} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Evaluations({ asset }: { asset: string }) {
  const query = useInfiniteQuery(conditionEvaluationsQuery(asset));
  return (
    <Panel title="What it asked for" label="Evaluations of the condition">
      <Paged query={query} rows={2} isInPanel empty={<p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>Nothing yet.</p>}>
        {(items) => (
          <ul className="attention">
            {items.map((each) => (
              <li key={each.evaluation_id}>
                <State state={each.status} />
                <span className="what">
                  {plural(each.partitions, "partition")} <span className="mono muted">{(each.partition_keys ?? []).slice(0, 3).join(", ")}</span> {each.reason == null ? null : <span style={{ color: "var(--failed)" }}>{each.reason}</span>}
                  {each.trace == null ? null : (
                    <details>
                      <summary className="muted">Why</summary>
                      <ul className="trace">
                        <Part trace={each.trace} />
                      </ul>
                    </details>
                  )}
                </span>
                {each.run_id == null ? null : (
                  <Link href={runHref(each.run_id)} className="mono">
                    {shortRun(each.run_id)}
                  </Link>
                )}
                <span className="muted nowrap">
                  <Ago at={each.evaluated_at} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Paged>
    </Panel>
  );
}
