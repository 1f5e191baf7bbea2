// Tasks over time: waiting, queued, running. "Why is this waiting" is a sentence in the row.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import type { Schemas } from "../api/client";
import { duration, plural } from "../parts/format";
import { Mark, toneOf, wordOf } from "../parts/State";
import { useNow } from "../parts/Time";
import { isActive, taskName, type Run, type Task } from "./useRun";

const ROW = 26;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];

const FILL: Record<string, string> = { SUCCEEDED: "fill-succeeded", FAILED: "fill-failed", RUNNING: "fill-running" };

/** Bars of one row that are drawn one by one. */
const MOST_BARS = 300;
/** Rows of assets; tasks one by one have no such limit. */
const MOST_ROWS = 200;

/** One row for every asset: all of its tasks side by side. */
function ByAsset({ run, tasks, selected, onSelect, now }: { run: Run; tasks: readonly Task[]; selected: string; onSelect: (task: string) => void; now: number }) {
  const scale = scaleOf(run, now);
  const rows = useMemo(() => {
    const found = new Map<string, Task[]>();
    for (const task of tasks) {
      const known = found.get(task.asset_key);
      if (known === undefined) found.set(task.asset_key, [task]);
      else known.push(task);
    }
    const begin = (each: readonly Task[]) => Math.min(...each.map((task) => Date.parse(task.started_at ?? task.ready_at ?? "") || Infinity));
    return [...found].sort(([, a], [, b]) => begin(a) - begin(b));
  }, [tasks]);
  return (
    <div className="scroll" style={{ maxHeight: 340 }} role="list" aria-label="Assets over time" tabIndex={-1}>
      {rows.slice(0, MOST_ROWS).map(([asset, each]) => {
        const worst = each.find((task) => task.state === "FAILED") ?? each.find((task) => task.state === "RUNNING") ?? each.find((task) => isActive(task)) ?? each[0];
        const done = each.filter((task) => task.state === "SUCCEEDED").length;
        return (
          <div key={asset} role="listitem" className="gantt">
            <div className="gantt-row" data-current={each.some((task) => task.task_id === selected)}>
              <button
                type="button"
                className="gantt-name"
                title={`${asset}: ${String(done)} of ${String(each.length)} succeeded`}
                onClick={() => {
                  if (worst !== undefined) onSelect(worst.task_id);
                }}
              >
                {worst === undefined ? null : <Mark tone={toneOf(worst.state)} label={wordOf(worst.state)} progress={done / each.length} />}
                <span className="ellipsis grow">{asset.replace("/", ".")}</span>
                <span className="muted">{each.length === 1 ? "" : `${String(done)} of ${String(each.length)}`}</span>
              </button>
              <div className="gantt-track">
                {[...each]
                  .sort((a, b) => Number(a.state === "FAILED") - Number(b.state === "FAILED"))
                  .slice(-MOST_BARS)
                  .map((task) => {
                    if (task.started_at == null) return null;
                    const began = Date.parse(task.started_at);
                    const ended = endOf(task, now);
                    return (
                      <span
                        key={task.task_id}
                        className={`gantt-bar ${FILL[task.state] ?? "fill-queued"}${task.task_id === selected ? " critical" : ""}`}
                        style={{ left: scale.x(began), width: scale.width(began, ended) }}
                        title={`${taskName(task)}: ${wordOf(task.state)}, ${duration(ended - began)}`}
                        onClick={() => {
                          onSelect(task.task_id);
                        }}
                      />
                    );
                  })}
              </div>
            </div>
          </div>
        );
      })}
      {rows.length > MOST_ROWS ? (
        <p className="muted" role="listitem" style={{ padding: "6px 12px", fontSize: 13 }}>
          and {plural(rows.length - MOST_ROWS, "asset")} more: see them by task
        </p>
      ) : null}
    </div>
  );
}

const endOf = (task: Task, now: number) => (task.finished_at == null ? (isActive(task) ? now : Date.parse(task.transition_at)) : Date.parse(task.finished_at));

function scaleOf(run: Run, now: number) {
  const from = Date.parse(run.started_at ?? run.created_at);
  const until = Math.max(run.finished_at == null ? now : Date.parse(run.finished_at), from + 20);
  const span = until - from;
  return {
    span,
    x: (at: number) => `${String(Math.max(0, Math.min(100, ((at - from) / span) * 100)))}%`,
    width: (a: number, b: number) => `${String(Math.max(0, ((Math.min(b, until) - Math.max(a, from)) / span) * 100))}%`,
  };
}

export function Gantt({ run, tasks, why, selected, onSelect, byAsset }: { run: Run; tasks: readonly Task[]; why: Schemas["Why"] | undefined; selected: string; onSelect: (task: string) => void; byAsset: boolean }) {
  const now = useNow();
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => {
    const begin = (task: Task) => Date.parse(task.started_at ?? task.dispatched_at ?? task.ready_at ?? "") || Infinity;
    return [...tasks].sort((a, b) => begin(a) - begin(b) || (a.task_key < b.task_key ? -1 : 1));
  }, [tasks]);
  const reasons = useMemo(() => new Map(why?.tasks.map((task) => [task.task_key, task.waits[0]?.detail ?? ""])), [why]);
  const { span, x, width } = scaleOf(run, now);
  const step = STEPS.find((each) => span / each <= 8) ?? span / 8;
  const marks = Array.from({ length: Math.floor(span / step) + 1 }, (_, index) => index * step).filter((at) => at / span < 0.96);
  const virtual = useVirtualizer({ count: sorted.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 10 });
  return (
    <div>
      <div className="gantt" aria-hidden="true">
        <div className="axis" />
        <div className="axis">
          {marks.map((at) => (
            <span key={at} style={{ left: `${String((at / span) * 100)}%` }}>
              {at === 0 ? "0" : duration(at)}
            </span>
          ))}
        </div>
      </div>
      {byAsset ? <ByAsset run={run} tasks={tasks} selected={selected} onSelect={onSelect} now={now} /> : null}
      <div ref={scroller} className="scroll" style={{ maxHeight: 340, display: byAsset ? "none" : undefined }} tabIndex={-1}>
        <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="list" aria-label="Tasks over time">
          {virtual.getVirtualItems().map((each) => {
            const task = sorted[each.index];
            if (task === undefined) return null;
            const name = taskName(task);
            const began = task.started_at == null ? undefined : Date.parse(task.started_at);
            const ended = endOf(task, now);
            const ready = Date.parse(task.ready_at ?? task.dispatched_at ?? "");
            const reason = reasons.get(task.task_key);
            const took = began === undefined ? "" : duration(ended - began);
            return (
              <div key={task.task_id} role="listitem" className="gantt" style={{ position: "absolute", top: 0, left: 0, right: 0, height: ROW, transform: `translateY(${String(each.start)}px)` }}>
                <div className="gantt-row" data-current={task.task_id === selected}>
                  <button
                    type="button"
                    className="gantt-name"
                    aria-pressed={task.task_id === selected}
                    title={`${name}: ${wordOf(task.state)}${task.error == null ? "" : `, ${task.error.message}`}`}
                    onClick={() => {
                      onSelect(task.task_id);
                    }}
                  >
                    <Mark tone={toneOf(task.state)} label={wordOf(task.state)} {...(task.progress == null ? {} : { progress: task.progress.ppm / 1e6 })} />
                    <span className="ellipsis">{name}</span>
                  </button>
                  <div
                    className="gantt-track"
                    onClick={() => {
                      onSelect(task.task_id);
                    }}
                  >
                    {Number.isNaN(ready) || began === undefined ? null : <span className="gantt-bar waiting" style={{ left: x(ready), width: width(ready, began) }} />}
                    {began === undefined ? null : <span className={`gantt-bar ${FILL[task.state] ?? "fill-queued"}`} style={{ left: x(began), width: width(began, ended) }} title={`${wordOf(task.state)}, ${took}${task.attempt > 1 ? `, attempt ${String(task.attempt)}` : ""}`} />}
                    {began === undefined && reason !== undefined ? <span className="gantt-why">{reason}</span> : null}
                    {began === undefined && reason === undefined && task.state === "SKIPPED" ? <span className="gantt-why">skipped{task.caused_by == null ? "" : `: ${task.caused_by.replace("/", ".").replace(":materialize", "")} failed`}</span> : null}
                    {task.state === "RETRY_WAIT" && task.retry_at != null ? <span className="gantt-why">tries again {Date.parse(task.retry_at) > now ? `in ${duration(Date.parse(task.retry_at) - now)}` : "now"}</span> : null}
                  </div>
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
