// What a run is, how it goes, and what can be done about it.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { answer, api, once } from "../api/client";
import { materializeStore } from "../materialize/open";
import { Act } from "../parts/Act";
import { ActionDialog, ReasonField } from "../parts/ActionDialog";
import { between, exactly, money, plural, runHref } from "../parts/format";
import { State } from "../parts/State";
import { Ago, useNow } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";
import { sourceOf, useScheduleNames } from "./source";
import { partitionsText, progressOf, tasksText } from "./text";
import { isRunActive, type Run } from "./useRun";

export function RunHead({ run }: { run: Run }) {
  const now = useNow();
  const [, navigate] = useLocation();
  const [cancels, setCancels] = useState(false);
  const source = sourceOf(run, useScheduleNames());
  const retry = useMutation({
    mutationFn: (from_failure: boolean) => answer(api.POST("/api/v1/runs/{run_id}/retry", { params: { path: { run_id: run.run_id }, header: once() }, body: { from_failure } })),
    onSuccess: (accepted) => {
      toast(`Asked for a run of ${plural(accepted.tasks, "task")}`);
      navigate(runHref(accepted.run_id));
    },
    onError: toastError,
  });
  const isOver = !isRunActive(run);
  const failed = run.tasks_failed + run.tasks_skipped + run.tasks_cancelled;
  return (
    <div className="runbar" style={{ marginBottom: 0 }}>
      <div className="page-head">
        <h1>
          <span className="mono" style={{ fontSize: 18 }}>
            {run.selection ?? run.run_key}
          </span>{" "}
          <span className="muted" style={{ fontSize: 14, fontWeight: 400 }}>
            {partitionsText(run)}
          </span>
        </h1>
        <div className="actions">
          {isOver ? (
            <>
              {failed > 0 ? (
                <Act
                  needs="runs.retry"
                  className="button primary"
                  disabled={retry.isPending}
                  onClick={() => {
                    retry.mutate(true);
                  }}
                >
                  Retry from failure
                </Act>
              ) : null}
              <Act
                needs="runs.retry"
                className="button"
                disabled={retry.isPending}
                onClick={() => {
                  retry.mutate(false);
                }}
              >
                Run again
              </Act>
              {run.selection == null || run.selection === "" ? null : (
                <Act
                  needs="runs.trigger"
                  className="button"
                  title="Change what is asked for, then run it; configuration and labels are those of this run"
                  onClick={() => {
                    materializeStore.open({ selection: run.selection ?? "", partitions: run.partitions, config: run.config, labels: run.labels, priority: run.priority });
                  }}
                >
                  Re-run…
                </Act>
              )}
            </>
          ) : (
            <Act
              needs="runs.cancel"
              className="button danger"
              onClick={() => {
                setCancels(true);
              }}
            >
              Cancel run
            </Act>
          )}
        </div>
      </div>
      <div className="row wrap" style={{ fontSize: 13, gap: "4px 16px" }}>
        <State state={run.state} progress={progressOf(run)} />
        <span title={run.started_at == null ? undefined : exactly(run.started_at)}>
          {isOver ? "took" : "for"} {between(run.started_at ?? run.created_at, run.finished_at ?? undefined, now)}
        </span>
        <span>{tasksText(run)}</span>
        {run.cost_micro_usd === undefined || run.cost_micro_usd === 0 ? null : <span title="What its attempts cost that have ended, failed ones too">{money(run.cost_micro_usd)}</span>}
        {(run.checks_failed ?? 0) > 0 ? <span style={{ color: "var(--blocked)" }}>{plural(run.checks_failed ?? 0, "check")} failed</span> : null}
        <span className="muted">
          {source.href === undefined ? source.text : <Link href={source.href}>{source.text}</Link>}, <Ago at={run.created_at} />
        </span>
        <button
          type="button"
          className="mono muted"
          style={{ border: 0, background: "transparent", cursor: "copy", padding: 0 }}
          title="Copy the id"
          onClick={() => {
            void navigator.clipboard.writeText(run.run_id).then(() => {
              toast("The id is copied");
            });
          }}
        >
          {run.run_id}
        </button>
      </div>
      {cancels ? (
        <CancelDialog
          run={run}
          onClose={() => {
            setCancels(false);
          }}
        />
      ) : null}
    </div>
  );
}

function CancelDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const cancel = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/runs/{run_id}/cancel", { params: { path: { run_id: run.run_id }, header: once() }, body: { reason } })),
    onSuccess: () => {
      toast("The run is being cancelled");
      onClose();
    },
  });
  const open = run.tasks_total - run.tasks_succeeded - run.tasks_failed - run.tasks_skipped - run.tasks_cancelled;
  return (
    <ActionDialog
      title="Cancel this run?"
      onClose={onClose}
      action={`Cancel ${plural(open, "task")}`}
      onAct={() => {
        cancel.mutate();
      }}
      change={cancel}
      close="Keep it running"
      isDangerous
    >
      <p>
        {plural(open, "task")} will not be made; those that run are asked to stop. What has succeeded stays.
      </p>
      <ReasonField value={reason} onChange={setReason} />
    </ActionDialog>
  );
}
