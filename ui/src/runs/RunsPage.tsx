// Runs, newest first, with filters that are in the address.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { runsQuery, type RunFilters } from "../api/queries";
import { between, dotted, exactly, runHref, shortRun, slashed } from "../parts/format";
import { Choose, Segments, type Choices } from "../parts/fields";
import { PageHead } from "../parts/PageHead";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago, useNow } from "../parts/Time";
import { usePages } from "../parts/Table";
import { VirtualList } from "../parts/VirtualList";
import { sourceOf, useScheduleNames } from "./source";
import { partitionsText, progressOf, tasksText } from "./text";
import type { Run } from "./useRun";

const STATES: Choices = [
  ["", "All"],
  ["RUNNING,QUEUED,REQUESTED,CANCELLING", "Active"],
  ["FAILED", "Failed"],
  ["SUCCEEDED", "Succeeded"],
  ["CANCELLED", "Cancelled"],
];
const SOURCES: Choices = [["", "Any source"], ...["manual", "api", "schedule", "sensor", "condition", "backfill", "retry"].map((each): [string, string] => [each, each])];
const COLUMNS = "118px minmax(100px, 120px) minmax(140px, 2fr) minmax(100px, 1fr) minmax(90px, 130px) 84px 84px";

export default function RunsPage() {
  const [params, setParams] = useSearchParams();
  const filters: RunFilters = useMemo(() => {
    const read = (name: string) => params.get(name) ?? undefined;
    const found: Record<string, string> = {};
    for (const name of ["state", "source", "asset", "partition", "created_after", "created_before"]) {
      const value = read(name);
      if (value !== undefined) found[name] = value;
    }
    return found;
  }, [params]);
  const set = (name: string, value: string) => {
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (value === "") after.delete(name);
        else after.set(name, value);
        return after;
      },
      { replace: true },
    );
  };
  const query = useInfiniteQuery(runsQuery(filters));
  const { items, more } = usePages(query);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <div className="page stack">
      <PageHead title="Runs">
        <Segments
          label="State"
          value={filters.state ?? ""}
          choices={STATES}
          onChange={(value) => {
            set("state", value);
          }}
        />
        <Choose
          label="Source"
          value={filters.source ?? ""}
          choices={SOURCES}
          onChange={(value) => {
            set("source", value);
          }}
        />
        <AssetFilter
          key={filters.asset ?? ""}
          value={filters.asset ?? ""}
          onChange={(value) => {
            set("asset", value);
          }}
        />
        {filters.created_after === undefined ? null : (
          <button
            type="button"
            className="chip"
            title={exactly(filters.created_after)}
            onClick={() => {
              setParams(
                (before) => {
                  const after = new URLSearchParams(before);
                  after.delete("created_after");
                  after.delete("created_before");
                  return after;
                },
                { replace: true },
              );
            }}
          >
            {exactly(filters.created_after).split("\n")[0]} … ✕
          </button>
        )}
      </PageHead>
      {query.error !== null ? <ProblemBox error={query.error} again={() => void query.refetch()} /> : null}
      {query.isPending && query.error === null ? <Skeleton rows={12} /> : null}
      {query.isSuccess && items.length === 0 ? (
        isFiltered ? (
          <Empty title="No run is like that" />
        ) : (
          <Empty title="No runs yet">
            <p>A run makes assets. Ask for one with Materialize, a schedule, or a command:</p>
            <pre>servo materialize &apos;*&apos;</pre>
          </Empty>
        )
      ) : null}
      {items.length > 0 ? (
        <section className="panel">
          <VirtualList
            label="Runs"
            items={items}
            columns={COLUMNS}
            id={(run) => run.run_id}
            href={(run) => runHref(run.run_id)}
            more={more}
            version={(run) => `${run.state} ${String(run.tasks_failed)}`}
            head={
              <>
                <span>State</span>
                <span>Run</span>
                <span>What</span>
                <span>Tasks</span>
                <span>Source</span>
                <span>Asked for</span>
                <span className="right">Took</span>
              </>
            }
            row={(run) => <RunRow run={run} />}
          />
        </section>
      ) : null}
    </div>
  );
}

function AssetFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value === "" ? "" : dotted(value));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChange(slashed(text.trim()).replace("/", "."));
      }}
    >
      <input
        className="field"
        data-search=""
        aria-label="Asset"
        placeholder="asset, then Enter"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
        }}
        onBlur={() => {
          if (text.trim() !== value) onChange(text.trim());
        }}
      />
    </form>
  );
}

function RunRow({ run }: { run: Run }) {
  const now = useNow();
  const source = sourceOf(run, useScheduleNames());
  return (
    <>
      <State state={run.state} progress={progressOf(run)} />
      <Link href={runHref(run.run_id)} className="mono" title={run.run_id}>
        {shortRun(run.run_id)}
      </Link>
      <span title={run.selection ?? run.run_key}>
        <span className="mono">{run.selection ?? run.run_key}</span> <span className="muted">{partitionsText(run)}</span>
      </span>
      <span>{tasksText(run)}</span>
      <span className="muted">{source.href === undefined ? source.text : <Link href={source.href}>{source.text}</Link>}</span>
      <Ago at={run.created_at} />
      <span className="right">{between(run.started_at ?? run.created_at, run.finished_at ?? undefined, now)}</span>
    </>
  );
}
