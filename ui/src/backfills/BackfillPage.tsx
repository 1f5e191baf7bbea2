// One backfill: how far it is, its chunks and their runs; pause, resume, cancel, retry what failed.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { backfillQuery, chunksQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { ActionDialog } from "../parts/ActionDialog";
import { Choose, type Choices } from "../parts/fields";
import { assetHref, count, dotted, plural, runHref, shortRun } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { ChunkMap } from "./ChunkMap";
import { unplannedOf } from "./chunks";
import { Progress, rateOf, whichOf } from "./Progress";

type Backfill = Schemas["Backfill"];

export default function BackfillPage({ id }: { id: string }) {
  const query = useQuery(backfillQuery(id));
  if (query.data === undefined) return <div className="page">{query.error === null ? <Skeleton rows={8} /> : <ProblemBox error={query.error} again={() => void query.refetch()} />}</div>;
  return <Detail backfill={query.data} />;
}

const CHUNK_STATES: Choices = [
  ["", "All, the last first"],
  ["FAILED", "Failed"],
  ["RUNNING", "Running"],
  ["SUCCEEDED", "Succeeded"],
  ["CANCELLED", "Cancelled"],
];

const CHUNKS: Column<Schemas["BackfillChunk"]>[] = [
  { head: "State", className: "nowrap", cell: (chunk) => <State state={chunk.state} /> },
  { head: "Partitions", cell: (chunk) => `${plural(chunk.partitions, "partition")}${chunk.failed_partitions > 0 ? `, ${count(chunk.failed_partitions)} failed` : ""}` },
  // Ranges, both ends included.
  { head: "Which", className: "mono muted", title: (chunk) => chunk.partition_keys.join("\n"), cell: (chunk) => `${chunk.partition_keys.slice(0, 2).join(", ")}${chunk.partition_keys.length > 2 ? ` and ${count(chunk.partition_keys.length - 2)} more` : ""}` },
  { head: "Run", className: "mono", cell: (chunk) => <Link href={runHref(chunk.run_id)}>{shortRun(chunk.run_id)}</Link> },
];

function Detail({ backfill }: { backfill: Backfill }) {
  const [state, setState] = useParam("chunks");
  const query = useInfiniteQuery(chunksQuery(backfill.backfill_id, state));
  return (
    <div className="page stack">
      <PageHead
        of={["/backfills", "Backfills"]}
        title={
          <>
            <span className="mono" style={{ fontSize: 18 }}>
              {backfill.selection}
            </span>{" "}
            <span className="muted" style={{ fontSize: 14, fontWeight: 400 }}>
              {whichOf(backfill)}
            </span>
          </>
        }
        actions={<Actions backfill={backfill} />}
      />
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
        <Panel title="Chunks" label="Chunks" aside={<Choose label="State of chunks" isSmall value={state} choices={CHUNK_STATES} onChange={setState} />}>
          <Paged
            query={query}
            rows={5}
            isInPanel
            next="Show earlier chunks"
            empty={<Empty title={state === "" ? "No chunk is planned yet" : "No chunk is like that"}>{state === "" && unplannedOf(backfill, []) > 0 ? <p>{plural(unplannedOf(backfill, []), "partition")} to come.</p> : null}</Empty>}
          >
            {(items) => (
              <>
                <ChunkMap chunks={items} unplanned={state === "" ? unplannedOf(backfill, items) : 0} earlier={state === "" ? Math.max(0, backfill.planned_chunks - items.length) : 0} isEnded={backfill.is_ended} />
                <Table label="Table of chunks" items={items} columns={CHUNKS} id={(chunk) => chunk.chunk_id} href={(chunk) => runHref(chunk.run_id)} version={(chunk) => chunk.state} />
              </>
            )}
          </Paged>
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
                <dd className="mono">{(target.partitions ?? []).slice(0, 5).join(", ")}{(target.partitions ?? []).length > 5 || (target.more ?? 0) > 0 ? ` and ${count(Math.max(0, (target.partitions ?? []).length - 5) + (target.more ?? 0))} more ranges` : ""}</dd>
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
    <>
      {backfill.is_ended ? (
        backfill.completed_partitions < backfill.total_partitions ? (
          <Act
            needs="runs.retry"
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
          <Act
            needs="automation.operate"
            className="button"
            disabled={change.isPending}
            onClick={() => {
              change.mutate(isPaused ? "resume" : "pause");
            }}
          >
            {isPaused ? "Resume" : "Pause"}
          </Act>
          <Act
            needs="automation.operate"
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
        <ActionDialog
          title="Cancel this backfill?"
          onClose={() => {
            setCancels(false);
          }}
          action="Cancel the backfill"
          onAct={() => {
            change.mutate("cancel");
          }}
          change={change}
          close="Keep it going"
          isDangerous
        >
          <p>
            {plural(backfill.pending_partitions, "partition")} will not be made, and {plural(backfill.active_runs.length, "run")} of it cancelled. What was made stays.
          </p>
        </ActionDialog>
      ) : null}
    </>
  );
}
