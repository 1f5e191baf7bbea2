// One backfill: how far it is, its chunks and their runs; pause, resume, cancel, retry what failed.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { backfillQuery, chunksQuery } from "../api/queries";
import { Dialog } from "../parts/Dialog";
import { assetHref, count, dotted, plural, runHref, shortRun } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { Progress, rateOf, whichOf } from "./Progress";
import { Act } from "../parts/Act";

type Backfill = Schemas["Backfill"];

export default function BackfillPage({ id }: { id: string }) {
  const query = useQuery(backfillQuery(id));
  if (query.data === undefined) return <div className="page">{query.error === null ? <Skeleton rows={8} /> : <ProblemBox error={query.error} again={() => void query.refetch()} />}</div>;
  return <Detail backfill={query.data} />;
}

function Detail({ backfill }: { backfill: Backfill }) {
  const chunks = useQuery(chunksQuery(backfill.backfill_id));
  return (
    <div className="page stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>
          <Link href="/backfills" className="crumb" style={{ fontWeight: 400 }}>
            Backfills /{" "}
          </Link>
          <span className="mono" style={{ fontSize: 18 }}>
            {backfill.selection}
          </span>{" "}
          <span className="muted" style={{ fontSize: 14, fontWeight: 400 }}>
            {whichOf(backfill)}
          </span>
        </h1>
        <Actions backfill={backfill} />
      </div>
      <div className="row wrap" style={{ fontSize: 13, gap: "4px 16px" }}>
        <State state={backfill.state} />
        <span className="muted">{rateOf(backfill)}</span>
        <span className="muted">
          by {backfill.created_by}, <Ago at={backfill.created_at} />
        </span>
      </div>
      {backfill.reason == null ? null : <p className="notice">{backfill.reason}</p>}
      <Progress backfill={backfill} />
      <div className="figures">
        {(
          [
            ["made", backfill.completed_partitions],
            ["failed", backfill.failed_partitions],
            ["skipped", backfill.skipped_partitions],
            ["cancelled", backfill.cancelled_partitions],
            ["to come", backfill.pending_partitions],
          ] as const
        ).map(([name, value]) => (
          <div key={name} className="figure">
            <b>{count(value)}</b>
            <span>{name}</span>
          </div>
        ))}
        <div className="figure">
          <b>
            {count(backfill.planned_chunks)} of {count(backfill.total_chunks)}
          </b>
          <span>chunks planned, {plural(backfill.max_concurrent_runs, "run")} at once</span>
        </div>
      </div>
      <div className="columns">
        <Panel title="Chunks" label="Chunks" aside={<span className="muted">the last first</span>}>
          <Shown query={chunks} rows={5}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty title="No chunk is planned yet" />
              ) : (
                <div className="scroll">
                  <table className="table">
                    <thead>
                      <tr>
                        <th>State</th>
                        <th>Partitions</th>
                        <th>Run</th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map((chunk) => (
                        <tr key={chunk.chunk_id}>
                          <td>
                            <State state={chunk.state} />
                          </td>
                          <td>{plural(chunk.partitions, "partition")}</td>
                          <td className="mono">{<Link href={runHref(chunk.run_id)}>{shortRun(chunk.run_id)}</Link>}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )
            }
          </Shown>
        </Panel>
        <Panel title="What it makes" label="What it makes">
          <dl className="facts body">
            {(backfill.targets ?? []).map((target) => (
              <div key={target.asset_key} style={{ display: "contents" }}>
                <dt>
                  <Link href={assetHref(target.asset_key)} className="mono">
                    {dotted(target.asset_key)}
                  </Link>
                </dt>
                <dd>{(target.partitions ?? []).slice(0, 5).join(", ")}</dd>
              </div>
            ))}
          </dl>
        </Panel>
      </div>
    </div>
  );
}

function Actions({ backfill }: { backfill: Backfill }) {
  const [cancels, setCancels] = useState(false);
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const path = { backfill_id: backfill.backfill_id };
  const body = { expected_state_version: backfill.state_version };
  const isPaused = backfill.state.startsWith("PAUSED");
  const change = useMutation({
    mutationFn: (what: "pause" | "resume" | "cancel") => {
      const request = { params: { path, header: once() }, body };
      if (what === "pause") return answer(api.POST("/api/v1/orchestration/backfills/{backfill_id}/pause", request));
      if (what === "resume") return answer(api.POST("/api/v1/orchestration/backfills/{backfill_id}/resume", request));
      return answer(api.POST("/api/v1/orchestration/backfills/{backfill_id}/cancel", request));
    },
    onSuccess: async () => {
      setCancels(false);
      await queries.invalidateQueries({ queryKey: ["backfills"] });
    },
    onError: toastError,
  });
  const retry = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/orchestration/backfills/{backfill_id}/retry-failed", { params: { path, header: once() }, body: {} })),
    onSuccess: (made) => {
      toast(`Asked for a backfill of ${plural(made.total_partitions, "partition")}`);
      navigate(`/backfills/${made.backfill_id}`);
    },
    onError: toastError,
  });
  return (
    <div className="actions">
      {backfill.is_ended ? (
        backfill.completed_partitions < backfill.total_partitions ? (
          <Act needs="runs.retry"
           
            className="button primary"
            disabled={retry.isPending}
            onClick={() => {
              retry.mutate();
            }}
          >
            Retry {plural(backfill.total_partitions - backfill.completed_partitions, "partition")}
          </Act>
        ) : null
      ) : (
        <>
          <Act needs="automation.operate"
           
            className="button"
            disabled={change.isPending}
            onClick={() => {
              change.mutate(isPaused ? "resume" : "pause");
            }}
          >
            {isPaused ? "Resume" : "Pause"}
          </Act>
          <Act needs="automation.operate"
           
            className="button danger"
            onClick={() => {
              setCancels(true);
            }}
          >
            Cancel…
          </Act>
        </>
      )}
      {cancels ? (
        <Dialog
          title="Cancel this backfill?"
          onClose={() => {
            setCancels(false);
          }}
        >
          <div className="content">
            <p>
              {plural(backfill.pending_partitions, "partition")} will not be made, and {plural(backfill.active_runs.length, "run")} of it cancelled. What was made stays.
            </p>
          </div>
          <footer>
            <button
              type="button"
              className="button"
              onClick={() => {
                setCancels(false);
              }}
            >
              Keep it going
            </button>
            <button
              type="button"
              className="button danger"
              disabled={change.isPending}
              onClick={() => {
                change.mutate("cancel");
              }}
            >
              Cancel the backfill
            </button>
          </footer>
        </Dialog>
      ) : null}
    </div>
  );
}
