// Backfills: many partitions in chunks, with progress, rate and what is left.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { backfillsQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { count } from "../parts/format";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { Progress, rateOf, whichOf } from "./Progress";
import { Act } from "../parts/Act";

export default function BackfillsPage() {
  const query = useInfiniteQuery(backfillsQuery(""));
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="page stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>Backfills</h1>
        <div className="actions">
          <Act needs="runs.trigger"
           
            className="button primary"
            onClick={() => {
              materializeStore.open({ selection: "", asBackfill: true });
            }}
          >
            New backfill…
          </Act>
        </div>
      </div>
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={6} /> : null}
      {query.isSuccess && items.length === 0 ? (
        <Empty title="No backfills">
          <p>A backfill makes many partitions in chunks, each a run, and can be paused.</p>
          <pre>servo backfill create SELECTION --partitions FROM..TO</pre>
        </Empty>
      ) : null}
      {items.length === 0 ? null : (
        <section className="panel scroll">
          <table className="table">
            <thead>
              <tr>
                <th>State</th>
                <th>What</th>
                <th style={{ minWidth: 160 }}>Progress</th>
                <th className="right">Partitions</th>
                <th>Rate</th>
                <th>Created</th>
              </tr>
            </thead>
            <tbody>
              {items.map((backfill) => (
                <tr key={backfill.backfill_id}>
                  <td>
                    <State state={backfill.state} {...(backfill.reason == null ? {} : { title: backfill.reason })} />
                  </td>
                  <td>
                    <Link href={`/backfills/${backfill.backfill_id}`} className="mono">
                      {backfill.selection}
                    </Link>{" "}
                    <span className="muted">{whichOf(backfill)}</span>
                  </td>
                  <td>
                    <Progress backfill={backfill} />
                  </td>
                  <td className="right nowrap">
                    {count(backfill.completed_partitions)} of {count(backfill.total_partitions)}
                  </td>
                  <td className="muted nowrap">{rateOf(backfill)}</td>
                  <td>
                    <Ago at={backfill.created_at} />
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
