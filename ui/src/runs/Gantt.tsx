// Tasks over time: waiting, queued, running, attempt by attempt. "Why is this waiting" is a sentence in the row. The axis
// is dragged over to look closer.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState, type PointerEvent } from "react";
import type { Schemas } from "../api/client";
import { dotted, duration, plural } from "../parts/format";
import { Mark, toneOf, wordOf } from "../parts/State";
import { useNow } from "../parts/Time";
import { scaleOf, within, type Scale } from "./scale";
import { isActive, taskName, type Run, type Task } from "./useRun";

const ROW = 26;
const FILL: Record<string, string> = { SUCCEEDED: "fill-succeeded", FAILED: "fill-failed", RUNNING: "fill-running" };
/** Bars of one row that are drawn one by one. */
const MOST_BARS = 300;
/** Rows of assets or workers; tasks one by one have no such limit. */
const MOST_ROWS = 200;

export type Rows = "tasks" | "assets" | "workers";

interface Properties {
  run: Run;
  tasks: readonly Task[];
  why: Schemas["Why"] | undefined;
  /** Tasks that decided when the run ended. */
  critical: ReadonlySet<string>;
  selected: string;
  onSelect: (task: string) => void;
  rows: Rows;
  /** The part of the run that is looked at. */
  part: string;
  onPart: (part: string) => void;
}

const endOf = (task: Task, now: number) => (task.finished_at == null ? (isActive(task) ? now : Date.parse(task.transition_at)) : Date.parse(task.finished_at));
const beginOf = (task: Task) => Date.parse(task.past_attempts?.[0]?.started_at ?? task.started_at ?? task.dispatched_at ?? task.ready_at ?? "") || Infinity;

export function Gantt(properties: Properties) {
  const { run, tasks, rows, part, onPart } = properties;
  const now = useNow();
  const scale = scaleOf(run, now, part);
  return (
    <div>
      <Axis scale={scale} part={part} onPart={onPart} />
      {rows === "tasks" ? <ByTask {...properties} scale={scale} now={now} /> : <ByGroup key={rows} {...properties} tasks={tasks} scale={scale} now={now} />}
    </div>
  );
}

function Axis({ scale, part, onPart }: { scale: Scale; part: string; onPart: (part: string) => void }) {
  const [drag, setDrag] = useState<{ from: number; to: number } | undefined>();
  const at = (event: PointerEvent<HTMLDivElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - bounds.left) / Math.max(bounds.width, 1)));
  };
  const share = (value: number) => `${String(value * 100)}%`;
  return (
    <div className="gantt">
      <div className="axis">
        {part === "" ? null : (
          <button
            type="button"
            className="button small quiet"
            onClick={() => {
              onPart("");
            }}
          >
            Whole run
          </button>
        )}
      </div>
      <div
        className="axis drags"
        title="Drag to look closer"
        aria-hidden="true"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: at(event), to: at(event) });
        }}
        onPointerMove={(event) => {
          if (drag !== undefined) setDrag({ ...drag, to: at(event) });
        }}
        onPointerUp={() => {
          if (drag !== undefined) onPart(within(part, drag.from, drag.to));
          setDrag(undefined);
        }}
      >
        {scale.marks.map((mark) => (
          <span key={mark} style={{ left: share((mark - scale.offset) / scale.span) }}>
            {mark === 0 ? "0" : duration(mark)}
          </span>
        ))}
        {drag === undefined ? null : <i style={{ left: share(Math.min(drag.from, drag.to)), width: share(Math.abs(drag.to - drag.from)) }} />}
      </div>
    </div>
  );
}

interface Drawn extends Properties {
  scale: Scale;
  now: number;
}

function Bar({ scale, from, to, className, title, onClick }: { scale: Scale; from: number; to: number; className: string; title: string; onClick?: () => void }) {
  if (!scale.isSeen(from, to)) return null;
  return <span className={`gantt-bar ${className}`} style={{ left: scale.left(from), width: scale.width(from, to) }} title={title} onClick={onClick} />;
}

/** Attempts of a task that a worker began: those before the newest first. */
function Attempts({ task, scale, now, isCritical }: { task: Task; scale: Scale; now: number; isCritical: boolean }) {
  const past = task.past_attempts ?? [];
  const isPast = past.some((each) => each.attempt === task.attempt);
  const began = task.started_at == null || isPast ? undefined : Date.parse(task.started_at);
  const ended = endOf(task, now);
  const ready = Date.parse(task.ready_at ?? task.dispatched_at ?? "");
  const first = past.find((each) => each.started_at != null)?.started_at ?? undefined;
  const waitedUntil = first === undefined ? began : Date.parse(first);
  return (
    <>
      {Number.isNaN(ready) || waitedUntil === undefined || ready > waitedUntil ? null : <Bar scale={scale} from={ready} to={waitedUntil} className="waiting" title={`waited for ${duration(waitedUntil - ready)}`} />}
      {past.map((each) => {
        if (each.started_at == null || each.ended_at == null) return null;
        const [from, to] = [Date.parse(each.started_at), Date.parse(each.ended_at)];
        return <Bar key={each.attempt} scale={scale} from={from} to={to} className="fill-never" title={`attempt ${String(each.attempt)}: ${each.error == null ? "lost" : `${each.error.error_type ?? each.error.code}: ${each.error.message}`}, ${duration(to - from)}`} />;
      })}
      {began === undefined ? null : <Bar scale={scale} from={began} to={ended} className={`${FILL[task.state] ?? "fill-queued"}${isCritical ? " critical" : ""}`} title={`${wordOf(task.state)}, ${duration(ended - began)}${task.attempt > 1 ? `, attempt ${String(task.attempt)}` : ""}${isCritical ? ", on the critical path" : ""}`} />}
    </>
  );
}

/** Why a row has no bar yet, or what comes next. */
function reasonOf(task: Task, waits: string | undefined, now: number): string | undefined {
  if (task.state === "RETRY_WAIT" && task.retry_at != null) return `tries again ${Date.parse(task.retry_at) > now ? `in ${duration(Date.parse(task.retry_at) - now)}` : "now"}`;
  if (task.started_at != null) return undefined;
  if (waits !== undefined) return waits;
  if (task.state === "SKIPPED") return `skipped${task.caused_by == null ? "" : `: ${dotted(task.caused_by).replace(":materialize", "")} failed`}`;
  return undefined;
}

function ByTask({ tasks, why, critical, selected, onSelect, scale, now }: Drawn) {
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => tasks.map((task) => [beginOf(task), task] as const).sort((a, b) => a[0] - b[0] || (a[1].task_key < b[1].task_key ? -1 : 1)).map(([, task]) => task), [tasks]);
  const reasons = useMemo(() => new Map(why?.tasks.map((task) => [task.task_key, task.waits[0]?.detail ?? ""])), [why]);
  const virtual = useVirtualizer({ count: sorted.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 10 });
  return (
    <div ref={scroller} className="scroll" style={{ maxHeight: 340 }} tabIndex={-1}>
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="list" aria-label="Tasks over time">
        {virtual.getVirtualItems().map((each) => {
          const task = sorted[each.index];
          if (task === undefined) return null;
          const name = taskName(task);
          const reason = reasonOf(task, reasons.get(task.task_key), now);
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
                  <Attempts task={task} scale={scale} now={now} isCritical={critical.has(task.task_id)} />
                  {reason === undefined ? null : <span className={`gantt-why${task.started_at == null ? "" : " behind"}`}>{reason}</span>}
                </div>
              </div>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** One row for every asset or worker: all of its tasks side by side. */
function ByGroup({ tasks, critical, selected, onSelect, rows, scale, now }: Drawn) {
  const groups = useMemo(() => {
    const found = new Map<string, Task[]>();
    for (const task of tasks) {
      if (rows === "workers" && task.worker_id == null) continue;
      const name = rows === "workers" ? (task.worker_id ?? "") : dotted(task.asset_key);
      const known = found.get(name);
      if (known === undefined) found.set(name, [task]);
      else known.push(task);
    }
    const first = (each: readonly Task[]) => each.reduce((least, task) => Math.min(least, beginOf(task)), Infinity);
    return [...found].map(([name, each]) => [first(each), name, each] as const).sort((a, b) => a[0] - b[0]);
  }, [tasks, rows]);
  const many = rows === "workers" ? "worker" : "asset";
  return (
    <div className="scroll" style={{ maxHeight: 340 }} role="list" aria-label={rows === "workers" ? "Workers over time" : "Assets over time"} tabIndex={-1}>
      {groups.length === 0 ? (
        <p className="muted" role="listitem" style={{ padding: "6px 12px", fontSize: 13 }}>
          No worker has begun a task yet.
        </p>
      ) : null}
      {groups.slice(0, MOST_ROWS).map(([, name, each]) => {
        const worst = each.find((task) => task.state === "FAILED") ?? each.find((task) => task.state === "RUNNING") ?? each.find((task) => isActive(task)) ?? each[0];
        const done = each.filter((task) => task.state === "SUCCEEDED").length;
        return (
          <div key={name} role="listitem" className="gantt">
            <div className="gantt-row" data-current={each.some((task) => task.task_id === selected)}>
              <button
                type="button"
                className="gantt-name"
                title={`${name}: ${String(done)} of ${String(each.length)} succeeded`}
                onClick={() => {
                  if (worst !== undefined) onSelect(worst.task_id);
                }}
              >
                {worst === undefined ? null : <Mark tone={toneOf(worst.state)} label={wordOf(worst.state)} progress={done / each.length} />}
                <span className="ellipsis grow">{name}</span>
                <span className="muted hide-small">{each.length === 1 ? "" : `${String(done)} of ${String(each.length)}`}</span>
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
                      <Bar
                        key={task.task_id}
                        scale={scale}
                        from={began}
                        to={ended}
                        className={`${FILL[task.state] ?? "fill-queued"}${critical.has(task.task_id) ? " critical" : ""}${task.task_id === selected ? " chosen" : ""}`}
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
      {groups.length > MOST_ROWS ? (
        <p className="muted" role="listitem" style={{ padding: "6px 12px", fontSize: 13 }}>
          and {plural(groups.length - MOST_ROWS, many)} more: see them by task
        </p>
      ) : null}
    </div>
  );
}
