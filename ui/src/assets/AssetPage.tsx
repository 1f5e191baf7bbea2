// One asset: can I trust it?
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { assetQuery, historyQuery } from "../api/queries";
import { ConditionPanel } from "../automation/ConditionPanel";
import { materializeStore } from "../materialize/open";
import { bytes, count, dataHref, dotted, plural, runHref, shortRun } from "../parts/format";
import { Tabs } from "../parts/fields";
import { PageHead } from "../parts/PageHead";
import { cellText, lineOf } from "../parts/metadataKinds";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State, Tones } from "../parts/State";
import { Ago } from "../parts/Time";
import { Table, usePages, type Column } from "../parts/Table";
import { VirtualList } from "../parts/VirtualList";
import { useQuarantined } from "./useQuarantined";
import { DataPanel } from "./DataPanel";
import { Definition } from "./Definition";
import { Lineage } from "./Lineage";
import { Partitions } from "./Partitions";
import { Plots } from "./Plots";
import { policyText } from "./freshness";
import { StateBar } from "./StateBar";
import { knownOf, statusOf } from "./status";
import { WhyStale } from "./WhyStale";
import { Act } from "../parts/Act";

type Detail = Schemas["AssetDetail"];

export default function AssetPage({ asset }: { asset: string }) {
  const query = useQuery(assetQuery(asset));
  if (query.data === undefined)
    return (
      <div className="page stack">
        <PageHead of={["/assets", "Assets"]} title={dotted(asset)} />
        {query.error === null ? <Skeleton rows={10} /> : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      </div>
    );
  return <Shape detail={query.data} />;
}

function Shape({ detail }: { detail: Detail }) {
  const first = detail.partitioned ? "partitions" : "history";
  const [tab, setTab] = useParam("tab", first);
  const quarantined = useQuarantined();
  const status = statusOf(knownOf(detail), quarantined);
  const health = detail.health ?? undefined;
  const key = detail.asset_key;
  const tabs: [string, string][] = [
    ...(detail.partitioned ? [["partitions", `Partitions ${count(detail.partitions.total)}`] as [string, string]] : []),
    ["data", "Data"],
    ["history", "History"],
    ["checks", detail.checks === 0 ? "Checks" : `Checks ${count(detail.checks)}`],
    ["lineage", "Lineage"],
    ["definition", "Definition"],
    ["automation", "Automation"],
  ];
  return (
    <div className="page stack">
      <PageHead
        of={["/assets", "Assets"]}
        title={dotted(key)}
        actions={
          <>
            <Link className="button" href={`/assets?selection=${encodeURIComponent(`+${dotted(key)}+`)}&asset=${encodeURIComponent(key)}`}>
              In the graph
            </Link>
            <Link className="button" href={`/runs?asset=${encodeURIComponent(dotted(key))}`}>
              Runs
            </Link>
            <Act
              needs="runs.trigger"
              className="button primary"
              disabled={detail.external}
              title={detail.external ? "It is made outside of Servo" : undefined}
              onClick={() => {
                materializeStore.open({ selection: dotted(key) });
              }}
            >
              Materialize…
            </Act>
          </>
        }
      />
      <div className="row wrap" style={{ gap: "6px 18px", fontSize: 13 }}>
        <Tones tone={status.tone} title={status.why}>
          {status.word}
        </Tones>
        <span className="muted">{status.why}</span>
        {status.tone === "failed" && health?.last_failure_run_id != null ? (
          <Link href={runHref(health.last_failure_run_id)} className="button small">
            See why
          </Link>
        ) : null}
        {detail.active == null ? null : (
          <Link href={runHref(detail.active.run_id)} className="button small">
            Watch run
          </Link>
        )}
        {quarantined.has(key) ? (
          <Link href="/quarantine" className="button small">
            Review…
          </Link>
        ) : null}
      </div>
      {/* What was never made is no news beside its state. */}
      {knownOf(detail).stale === undefined ? null : <WhyStale asset={key} />}
      {detail.description == null ? null : <p style={{ maxWidth: "80ch" }}>{detail.description}</p>}
      <div className="figures">
        <div className="figure">
          <b>
            <Ago at={health?.last_success_at ?? undefined} />
          </b>
          <span>last made</span>
        </div>
        {detail.partitioned ? (
          <div className="figure" style={{ minWidth: 160 }}>
            <b>
              {count(detail.partitions.materialized)} of {count(detail.partitions.total)}
            </b>
            <StateBar totals={detail.partitions} />
          </div>
        ) : null}
        <div className="figure">
          <b>{detail.checks === 0 ? "none" : health?.last_check_passed == null ? count(detail.checks) : health.last_check_passed ? "passed" : "failed"}</b>
          <span>checks</span>
        </div>
        <div className="figure">
          <b>{detail.late_since != null ? <Ago at={detail.late_since} /> : detail.freshness == null ? "–" : <Ago at={detail.freshness.fails_at} />}</b>
          <span>
            {detail.late_since != null ? "late since" : detail.freshness == null ? "no freshness policy" : "late unless made"}
            {policyText(detail.definition) === undefined ? "" : `; ${policyText(detail.definition) ?? ""}`}
          </span>
        </div>
        <div className="figure">
          <b>{(detail.owners ?? []).join(", ") || "–"}</b>
          <span>owner</span>
        </div>
      </div>
      <Tabs label="About the asset" value={tab} choices={tabs} href={(name) => `?tab=${name}`} onChange={setTab} />
      {tab === "partitions" ? <Partitions asset={key} /> : null}
      {tab === "data" ? <DataPanel asset={key} detail={detail} /> : null}
      {tab === "history" ? <History asset={key} /> : null}
      {tab === "checks" ? <Checks detail={detail} /> : null}
      {tab === "lineage" ? <Lineage asset={key} detail={detail} /> : null}
      {tab === "definition" ? <Definition detail={detail} /> : null}
      {tab === "automation" ? <Automation detail={detail} /> : null}
    </div>
  );
}

const COLUMNS = "90px minmax(110px, 1fr) 120px 90px 84px minmax(110px, 1fr) minmax(120px, 2fr)";

function History({ asset }: { asset: string }) {
  const query = useInfiniteQuery(historyQuery(asset));
  const { items, more } = usePages(query);
  if (query.error !== null) return <ProblemBox error={query.error} again={() => void query.refetch()} />;
  if (query.isPending) return <Skeleton rows={6} />;
  if (items.length === 0)
    return (
      <Empty title="Never made">
        <p>Every materialization is listed here, with what was measured and attached to it.</p>
        <pre>{`servo materialize ${dotted(asset)}`}</pre>
      </Empty>
    );
  return (
    <div className="stack">
      <Plots items={items} />
      <section className="panel">
        <VirtualList
          label="Materializations"
          items={items}
          columns={COLUMNS}
          height="480px"
          id={(item) => item.materialization_id + item.row_version}
          href={(item) => `${runHref(item.run_id)}?task=${item.task_id}&tab=task`}
          more={more}
          head={
            <>
              <span>Made</span>
              <span>Partition</span>
              <span>Run</span>
              <span className="right">Rows</span>
              <span className="right">Size</span>
              <span>Checks</span>
              <span>Metadata</span>
            </>
          }
          row={(item) => (
            <>
              <Ago at={item.materialized_at} />
              {item.partition == null ? (
                <span className="muted">–</span>
              ) : (
                <Link href={dataHref(asset, item.partition)} className="mono" title="Show the newest data of the partition">
                  {item.partition}
                </Link>
              )}
              <Link href={`${runHref(item.run_id)}?task=${item.task_id}`} className="mono">
                {shortRun(item.run_id)}
              </Link>
              <span className="right">{item.row_count == null ? "–" : count(item.row_count)}</span>
              <span className="right">{item.byte_size == null ? "–" : bytes(item.byte_size)}</span>
              <span>{item.checks_failed > 0 ? <State state="FAILED" word={`${String(item.checks_failed)} failed`} /> : item.checks_passed > 0 ? `${String(item.checks_passed)} passed` : <span className="muted">–</span>}</span>
              <span className="muted" title={Object.entries(item.metadata ?? {}).map(([name, value]) => `${name}: ${lineOf(value)}`).join("\n")}>
                {Object.entries(item.metadata ?? {}).map(([name, value]) => (
                  <span key={name} className="attached">
                    <span className="mono">{name}</span> {lineOf(value)}
                  </span>
                ))}
              </span>
            </>
          )}
        />
      </section>
    </div>
  );
}

interface CheckDef {
  name: string;
  type: string;
  severity?: string;
  phase?: string;
  blocking?: boolean;
  description?: string;
  spec?: Record<string, unknown>;
}

const CHECKS: Column<CheckDef>[] = [
  { head: "Check", className: "mono", cell: (check) => check.name },
  { head: "Type", cell: (check) => check.type },
  { head: "Severity", cell: (check) => `${check.severity ?? "error"}${check.blocking === true ? ", blocks" : check.blocking === false ? ", does not block" : ""}` },
  { head: "When", cell: (check) => (check.phase === "pre" ? "before" : "after") },
  { head: "Asks for", className: "mono muted", cell: (check) => check.description ?? Object.entries(check.spec ?? {}).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : cellText(value)}`).join("; ") },
];

function Checks({ detail }: { detail: Detail }) {
  const checks = (detail.definition as { checks?: CheckDef[] }).checks ?? [];
  const history = useInfiniteQuery(historyQuery(detail.asset_key));
  const newest = history.data?.pages[0]?.items ?? [];
  if (checks.length === 0)
    return (
      <Empty title="No checks">
        <p>Checks run before data counts: they warn, flag, block, or keep data for review.</p>
        <pre>{"@servo.asset(checks=[servo.row_count(min=1)])"}</pre>
      </Empty>
    );
  return (
    <div className="stack">
      <section className="panel">
        <Table label="Checks" items={checks} columns={CHECKS} id={(check) => check.name} />
      </section>
      <Panel title="When they last ran" label="Results of checks" aside={<span className="muted">{detail.health?.last_check_at == null ? "never" : <Ago at={detail.health.last_check_at} />}</span>}>
        <ul className="attention">
          {newest.slice(0, 10).map((item) => (
            <li key={item.materialization_id + item.row_version}>
              <State state={item.checks_failed > 0 ? "FAILED" : "SUCCEEDED"} word={item.checks_failed > 0 ? `${plural(item.checks_failed, "check")} failed` : `${plural(item.checks_passed, "check")} passed`} />
              <span className="mono">{item.partition ?? ""}</span>
              <Link href={`${runHref(item.run_id)}?task=${item.task_id}&tab=task`} className="mono muted">
                {shortRun(item.run_id)}
              </Link>
              <span className="grow" />
              <span className="muted">
                <Ago at={item.materialized_at} />
              </span>
            </li>
          ))}
        </ul>
      </Panel>
    </div>
  );
}

function Automation({ detail }: { detail: Detail }) {
  return (
    <div className="stack">
      <ConditionPanel asset={detail.asset_key} isThere={(detail.automation ?? []).some((each) => each.kind === "condition")} />
      <Schedules of={detail.automation ?? []} />
    </div>
  );
}

function Schedules({ of }: { of: readonly Schemas["AssetAutomation"][] }) {
  const items = of.filter((each) => each.kind !== "condition");
  return (
    <Panel title="Schedules and sensors" label="Schedules and sensors">
      {items.length === 0 ? (
        <Empty title="No schedule or sensor selects it">
          <pre>{`servo.schedule("morning", cron="0 6 * * *", selection="…")`}</pre>
        </Empty>
      ) : (
        <ul className="attention">
          {items.map((each) => (
            <li key={`${each.kind} ${each.name}`}>
              <State state={each.paused ? "PAUSED" : "ACTIVE"} />
              <Link href={`/automation/${each.kind}s/${encodeURIComponent(each.name)}`}>{each.name}</Link>
              <span className="chip">{each.kind}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
