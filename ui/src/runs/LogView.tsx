// The log of one attempt: live while it runs, a part at a time afterwards; searched, wrapped, downloaded.
import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { answer, api, type Schemas } from "../api/client";
import { route } from "../api/workspace";
import { count } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { plain, spansOf } from "./ansi";

type Line = Schemas["LogLine"];

/** Lines that are kept; older ones of a live log go. */
const KEPT = 20_000;
const PART = 1000;
const MERGE_MS = 150;

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

export function LogView({ run, task, attempt, isLive }: Props) {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [next, setNext] = useState<number | undefined>();
  const [dropped, setDropped] = useState(0);
  const [error, setError] = useState<unknown>();
  const [search, setSearch] = useState("");
  const [wraps, setWraps] = useState(true);
  const [isLoaded, setIsLoaded] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const path = { run_id: run, task_id: task, attempt };

  const load = async (offset: number) => {
    try {
      const part = await answer(api.GET("/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs", { params: { path, query: { offset, limit: PART } } }));
      setLines((before) => (offset === 0 ? part.lines : [...before, ...part.lines]));
      setNext(part.ended && part.lines.length < PART ? undefined : part.next_offset);
      setIsLoaded(true);
      setError(undefined);
    } catch (failed) {
      setError(failed);
    }
  };

  useEffect(() => {
    setLines([]);
    setDropped(0);
    setNext(undefined);
    follows.current = true;
    if (!isLive) {
      void load(0);
      return;
    }
    let gathered: Line[] = [];
    let merging: ReturnType<typeof setTimeout> | undefined;
    const merge = () => {
      merging = undefined;
      const fresh = gathered;
      gathered = [];
      setIsLoaded(true);
      setLines((before) => {
        const all = [...before, ...fresh];
        const over = Math.max(0, all.length - KEPT);
        if (over > 0) setDropped((value) => value + over);
        return over > 0 ? all.slice(over) : all;
      });
    };
    const source = new EventSource(route(`/api/v1/runs/${run}/tasks/${task}/attempts/${String(attempt)}/logs/stream`));
    source.addEventListener("log", (event) => {
      gathered.push(JSON.parse((event as MessageEvent<string>).data) as Line);
      merging ??= setTimeout(merge, MERGE_MS);
    });
    source.addEventListener("end", () => {
      source.close();
    });
    return () => {
      source.close();
      clearTimeout(merging);
    };
    // A change of attempt is another log; `load` reads what it is given.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [run, task, attempt, isLive]);

  const needle = search.toLowerCase();
  const shown = useMemo(() => (needle === "" ? lines : lines.filter((line) => plain(line.text).toLowerCase().includes(needle))), [lines, needle]);
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => 18, overscan: 20 });
  useEffect(() => {
    if (isLive && follows.current && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [shown.length, isLive, virtual]);

  const download = () => {
    const text = lines.map((line) => `${line.at} ${line.stream} ${plain(line.text)}`).join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `${task}-${String(attempt)}.log`;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  return (
    <div>
      <div className="row wrap" style={{ padding: "6px 12px" }}>
        <input
          className="field"
          style={{ height: 26, width: 200 }}
          placeholder="Search this log"
          aria-label="Search this log"
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
          }}
        />
        <label className="row" style={{ fontSize: 13 }}>
          <input
            type="checkbox"
            checked={wraps}
            onChange={(event) => {
              setWraps(event.target.checked);
            }}
          />
          Wrap
        </label>
        <span className="muted" style={{ fontSize: 12 }}>
          {count(shown.length)} {shown.length === 1 ? "line" : "lines"}
          {dropped > 0 ? `, ${count(dropped)} older not kept` : ""}
        </span>
        <span className="grow" />
        {next !== undefined && !isLive && lines.length >= PART ? (
          <button type="button" className="button small" onClick={() => void load(next)}>
            Load {count(PART)} more
          </button>
        ) : null}
        <button type="button" className="button small" disabled={lines.length === 0} onClick={download}>
          Download
        </button>
      </div>
      {error === undefined ? null : (
        <div style={{ padding: 12 }}>
          <ProblemBox error={error} again={() => void load(0)} />
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
        {shown.length === 0 ? <p className="muted" style={{ padding: 12 }}>{isLoaded ? (needle === "" ? "Nothing was written." : "No line has that.") : isLive ? "Nothing was written yet." : " "}</p> : null}
        <div style={{ height: virtual.getTotalSize(), position: "relative", minWidth: "100%" }}>
          {virtual.getVirtualItems().map((each) => {
            const line = shown[each.index];
            if (line === undefined) return null;
            return (
              <div key={each.key} ref={virtual.measureElement} data-index={each.index} className={`log-line ${line.stream}${line.level == null ? "" : ` level-${line.level.toLowerCase()}`}`} style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${String(each.start)}px)` }}>
                <time className="hide-small">{line.at.slice(11, 23)}</time>
                <span>{textOf(line.text)}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
