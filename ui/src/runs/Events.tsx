// What happened in a run, oldest first; a row leads to its task.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import { Choose, type Choices } from "../parts/fields";
import { count, duration, exactly } from "../parts/format";
import { Empty, Panel } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Mark, toneOf, wordOf } from "../parts/State";
import { transitionsOf } from "./transitions";
import type { Run, Task } from "./useRun";

const ROW = 28;
const KINDS: Choices = [
  ["", "Everything"],
  ["ends", "Ends"],
  ["wrong", "What went wrong"],
];
const ENDS = new Set(["SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED", "RETRY_WAIT"]);
const WRONG = new Set(["FAILED", "SKIPPED", "CANCELLED", "RETRY_WAIT", "CANCELLING"]);

export function Events({ run, tasks, selected, onSelect }: { run: Run; tasks: readonly Task[]; selected: string; onSelect: (task: string) => void }) {
  const [kind, setKind] = useParam("events");
  const all = useMemo(() => transitionsOf(run, tasks), [run, tasks]);
  const shown = useMemo(() => (kind === "" ? all : all.filter((each) => (kind === "wrong" ? WRONG : ENDS).has(each.state))), [all, kind]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 15 });
  const start = Date.parse(run.created_at);
  return (
    <Panel
      title="Events"
      label="Events"
      aside={
        <>
          <span className="muted">{count(shown.length)}</span>
          <span className="grow" />
          <Choose label="Which events" isSmall value={kind} choices={KINDS} onChange={setKind} />
        </>
      }
    >
      {shown.length === 0 ? <Empty title="Nothing of that happened" /> : null}
      <div ref={scroller} className="scroll" style={{ maxHeight: 420 }} tabIndex={0}>
        <div role="list" aria-label="Events of the run" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const each = shown[item.index];
            if (each === undefined) return null;
            const { task } = each;
            return (
              <div
                key={each.id}
                role="listitem"
                className="event-row"
                data-current={tasks.length > 1 && task?.task_id === selected}
                style={{ height: ROW, transform: `translateY(${String(item.start)}px)` }}
              >
                <span className="muted" title={exactly(each.at)}>
                  +{duration(Date.parse(each.at) - start)}
                </span>
                <Mark tone={toneOf(each.state)} label={wordOf(each.state)} />
                {task === undefined ? (
                  <span className="ellipsis">{each.what}</span>
                ) : (
                  <button
                    type="button"
                    className="link ellipsis"
                    onClick={() => {
                      onSelect(task.task_id);
                    }}
                  >
                    {each.what}
                    {(each.attempt ?? 0) > 1 || (task.past_attempts ?? []).length > 0 ? <span className="muted"> attempt {each.attempt}</span> : null}
                  </button>
                )}
                <span className="muted ellipsis" title={each.detail}>
                  {each.detail ?? ""}
                </span>
              </div>
            );
          })}
        </div>
      </div>
    </Panel>
  );
}
