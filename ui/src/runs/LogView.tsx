// The log of one attempt: live while it runs, a part at a time afterwards; searched, wrapped, downloaded.
import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Check } from "../parts/fields";
import { count, plural } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { toastError } from "../parts/toasts";
import { plain, spansOf } from "./ansi";
import { lineOf, partsOf, useLog } from "./useLog";

/** Rows from the end at which the next part is asked for. */
const NEAR_END = 60;
/** Heights of rows are known by the number of their line; of these many that have gone they are forgotten. */
const FORGOTTEN = 20_000;

/** A line with its colours. */
function textOf(text: string): ReactNode {
  const spans = spansOf(text);
  if (spans.every((span) => span.style === "")) return spans.map((span) => span.text).join("");
  return spans.map((span, index) => (span.style === "" ? <Fragment key={index}>{span.text}</Fragment> : <em key={index} className={span.style}>{span.text}</em>));
}

interface Props {
  run: string;
  task: string;
  attempt: number;
  isLive: boolean;
}

/** Of one attempt: another is another view, by its key. */
export function LogView({ run, task, attempt, isLive }: Props) {
  const path = { run_id: run, task_id: task, attempt };
  const follows = useRef(true);
  const { entries, dropped, behind, isLoaded, error, isFollowed, more, toStart, toEnd, follow } = useLog(path, isLive, follows);
  const [search, setSearch] = useState("");
  const [wraps, setWraps] = useState(true);
  const [isSaving, setIsSaving] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);

  const needle = search.toLowerCase();
  const found = useMemo(() => (needle === "" ? undefined : entries.flatMap((entry, index) => (plain(lineOf(entry).text).toLowerCase().includes(needle) ? [index] : []))), [entries, needle]);
  const rows = found?.length ?? entries.length;
  const virtual = useVirtualizer({
    count: rows,
    getScrollElement: () => scroller.current,
    estimateSize: () => 18,
    overscan: 12,
    // A line keeps its height when earlier ones go.
    getItemKey: (index) => dropped + (found?.[index] ?? index),
  });
  const forgotten = Math.floor(dropped / FORGOTTEN);
  useEffect(() => {
    virtual.measure();
  }, [forgotten, virtual]);
  const last = entries.length + dropped;
  /** Whether the end is wanted once its lines are there. */
  const wantsEnd = useRef(false);
  useEffect(() => {
    if (rows === 0 || !((isFollowed && follows.current) || wantsEnd.current)) return;
    wantsEnd.current = false;
    virtual.scrollToIndex(rows - 1, { align: "end" });
  }, [last, rows, isFollowed, virtual]);
  const shown = virtual.getVirtualItems();
  const isNearEnd = (shown.at(-1)?.index ?? 0) >= rows - NEAR_END;
  const asksOn = isNearEnd && found === undefined && rows > 0 && more !== undefined;
  useEffect(() => {
    if (asksOn) more();
    // Once for every end that comes near; what it asks for moves that end.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [asksOn, last]);

  const download = async () => {
    setIsSaving(true);
    try {
      const texts: Blob[] = [];
      for await (const { lines } of partsOf(path)) texts.push(new Blob(lines.map((line) => `${line.at} ${line.stream} ${plain(line.text)}\n`)));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(texts, { type: "text/plain" }));
      link.download = `${task}-${String(attempt)}.log`;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (failed) {
      toastError(failed);
    } finally {
      setIsSaving(false);
    }
  };

  return (
    <div>
      <div className="row wrap" style={{ padding: "6px 12px" }}>
        <input
          className="field small"
          style={{ width: 200 }}
          placeholder="Search these lines"
          aria-label="Search these lines"
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
          }}
        />
        <Check checked={wraps} onChange={setWraps}>
          Wrap
        </Check>
        <span className="muted" style={{ fontSize: 12 }}>
          {plural(rows, "line")}
          {dropped > 0 ? `, ${count(dropped)} earlier` : ""}
        </span>
        <span className="grow" />
        {dropped > 0 ? (
          <button
            type="button"
            className="button small"
            onClick={() => {
              if (scroller.current !== null) scroller.current.scrollTop = 0;
              toStart();
            }}
          >
            From the start
          </button>
        ) : null}
        {toEnd === undefined || rows === 0 ? null : (
          <button
            type="button"
            className="button small"
            onClick={() => {
              wantsEnd.current = true;
              toEnd();
            }}
          >
            To the end
          </button>
        )}
        {isLive && !isFollowed ? (
          <button type="button" className="button small" onClick={follow}>
            Follow
          </button>
        ) : null}
        <button type="button" className="button small" disabled={entries.length === 0 || isSaving} onClick={() => void download()}>
          Download
        </button>
      </div>
      {error === undefined ? null : (
        <div style={{ padding: 12 }}>
          <ProblemBox error={error} again={toStart} />
        </div>
      )}
      <div
        ref={scroller}
        style={{ height: Math.min(320, Math.max(72, virtual.getTotalSize() + 20)) }}
        className={`log${wraps ? " wraps" : ""}`}
        tabIndex={0}
        role="log"
        aria-label="Log"
        aria-live="off"
        onScroll={(event) => {
          const box = event.currentTarget;
          follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
        }}
      >
        {rows === 0 ? <p className="muted" style={{ padding: 12 }}>{isLoaded ? (needle === "" ? "Nothing was written." : "No line has that.") : isLive ? "Nothing was written yet." : " "}</p> : null}
        <div style={{ height: virtual.getTotalSize(), position: "relative", minWidth: "100%" }}>
          {shown.map((each) => {
            const entry = entries[found?.[each.index] ?? each.index];
            if (entry === undefined) return null;
            const line = lineOf(entry);
            return (
              <div key={each.key} ref={virtual.measureElement} data-index={each.index} className={`log-line of-${line.stream}${line.level == null ? "" : ` level-${line.level.toLowerCase()}`}`} style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${String(each.start)}px)` }}>
                <time className="hide-small">{line.at.slice(11, 23)}</time>
                <span>{textOf(line.text)}</span>
              </div>
            );
          })}
        </div>
      </div>
      {behind > 0 ? (
        <p className="muted log-foot">
          {plural(behind, "new line")} below what you read; scroll to the end to follow.
        </p>
      ) : null}
    </div>
  );
}
