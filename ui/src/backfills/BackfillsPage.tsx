// Backfills: many partitions in chunks, with progress, rate and what is left.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { backfillsQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { Act } from "../parts/Act";
import { Segments, type Choices } from "../parts/fields";
import { count } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { Progress, rateOf, whichOf } from "./Progress";

type Backfill = Schemas["Backfill"];

export const backfillHref = (id: string) => `/backfills/${id}`;

const STATES: Choices = [
  ["", "All"],
  ["PENDING,RUNNING,PAUSED,PAUSED_WITH_FAILURES", "Not ended"],
  ["FAILED", "Failed"],
  ["SUCCEEDED", "Succeeded"],
];

const COLUMNS: Column<Backfill>[] = [
  { head: "State", className: "nowrap", cell: (backfill) => <State state={backfill.state} {...(backfill.reason == null ? {} : { title: backfill.reason })} /> },
  {
    head: "What",
    cell: (backfill) => (
      <>
        <Link href={backfillHref(backfill.backfill_id)} className="mono">
          {backfill.selection}
        </Link>{" "}
        <span className="muted">{whichOf(backfill)}</span>
      </>
    ),
  },
  {
    head: "Progress",
    cell: (backfill) => (
      <div style={{ minWidth: 160 }}>
        <Progress backfill={backfill} />
      </div>
    ),
  },
  { head: "Partitions", className: "right nowrap", cell: (backfill) => `${count(backfill.completed_partitions)} of ${count(backfill.total_partitions)}` },
  { head: "Rate", className: "muted nowrap", cell: rateOf },
  { head: "Created", className: "nowrap", cell: (backfill) => <Ago at={backfill.created_at} /> },
];

export default function BackfillsPage() {
  const [state, setState] = useParam("state");
  const query = useInfiniteQuery(backfillsQuery(state));
  return (
    <div className="page stack">
      <PageHead
        title="Backfills"
        actions={
          <Act
            needs="runs.trigger"
            className="button primary"
            onClick={() => {
              materializeStore.open({ selection: "", asBackfill: true });
            }}
          >
            New backfill…
          </Act>
        }
      >
        <Segments label="State" value={state} choices={STATES} onChange={setState} />
      </PageHead>
      <Paged
        query={query}
        empty={
          state === "" ? (
            <Empty title="No backfills">
              <p>A backfill makes many partitions in chunks, each a run, and can be paused.</p>
              <pre>servo backfill create SELECTION --partitions FROM..TO</pre>
            </Empty>
          ) : (
            <Empty title="No backfill is like that" />
          )
        }
      >
        {(items) => (
          <section className="panel">
            <Table label="Backfills" items={items} columns={COLUMNS} id={(backfill) => backfill.backfill_id} href={(backfill) => backfillHref(backfill.backfill_id)} version={(backfill) => `${backfill.state} ${String(backfill.completed_chunks + backfill.failed_chunks)}`} />
          </section>
        )}
      </Paged>
    </div>
  );
}
