// Partitions as a heat map of buckets, and as a list when one zooms in. A brush over cells, by pointer or by keys, is what
// "Materialize" and "Backfill" take.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo, useState, type KeyboardEvent } from "react";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { partitionsQuery, summaryQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { count, dataHref, dotted, plural, runHref, shortRun } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { bucketText } from "./bucketText";
import { MarkDialog, useUndo, WipeDialog, type Chosen } from "./PartitionLife";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { usePages } from "../parts/Table";
import { VirtualList } from "../parts/VirtualList";
import { Act } from "../parts/Act";

type Summary = Schemas["PartitionSummary"];
type Bucket = Schemas["PartitionBucket"];

const STATUSES: [string, string][] = [
  ["", "All"],
  ["MATERIALIZED", "Materialized"],
  ["LAST_ATTEMPT_FAILED", "Last attempt failed"],
  ["NEVER_MATERIALIZED", "Never made"],
  ["EXPIRED", "Expired"],
];

export function Partitions({ asset }: { asset: string }) {
  const [from, setFrom] = useParam("from", "0");
  const [size] = useParam("count");
  const query = useQuery(summaryQuery(asset, 600, Number(from), size === "" ? undefined : Number(size)));
  const zoom = (first: number, positions: number | undefined) => {
    setFrom(String(first), { count: positions === undefined ? "" : String(positions) });
  };
  return (
    <div className="stack">
      <Panel title="By partition" label="Heat map of partitions" aside={<Legend />}>
        <Shown query={query} rows={3}>
          {(data) => <HeatMap asset={asset} summary={data} onZoom={zoom} isZoomed={from !== "0" || size !== ""} />}
        </Shown>
      </Panel>
      <PartitionList asset={asset} />
    </div>
  );
}

const LEGEND: [string, string][] = [
  ["fill-succeeded", "materialized"],
  ["fill-stale", "stale"],
  ["fill-failed", "last attempt failed"],
  ["fill-never", "never succeeded"],
  ["", "never made"],
];

function Legend() {
  return (
    <span className="legend" style={{ marginLeft: "auto" }}>
      {LEGEND.map(([fill, word]) => (
        <span key={word}>
          <i className={fill} style={fill === "" ? { background: "var(--missing-fill)" } : undefined} />
          {word}
        </span>
      ))}
    </span>
  );
}

const GAP = 2;
/** Cells are larger where few of them have the width to themselves. */
const [CELL, LARGE_CELL, FEW] = [14, 22, 44];
/** Room below the cells for the names of some columns, and between two of these. */
const [NAMES, BETWEEN_NAMES] = [18, 92];
const LABEL = 96;
/** Cells of one row of partitions that is folded into several lines. */
const FOLD = 60;

/** The colour of a bucket: the worst first, pale if only some are made. */
function fillOf(bucket: Bucket): { fill: string; opacity: number } {
  const made = bucket.materialized ?? 0;
  if ((bucket.last_attempt_failed ?? 0) > 0) return { fill: "var(--failed-fill)", opacity: 1 };
  if ((bucket.never_succeeded ?? 0) > 0) return { fill: "var(--never-fill)", opacity: 1 };
  if (made === 0) return { fill: "var(--missing-fill)", opacity: 1 };
  if ((bucket.stale ?? 0) > 0) return { fill: "var(--stale-fill)", opacity: 0.45 + 0.55 * ((bucket.stale ?? 0) / bucket.partitions) };
  return { fill: "var(--succeeded-fill)", opacity: 0.35 + 0.65 * (made / bucket.partitions) };
}

/** The first partition of a column, by the dimension that goes to the right. */
function columnName({ buckets, rows, dimension }: Summary, column: number): string {
  const first = buckets[column * rows.length]?.first ?? "";
  const part = first.split(",").find((each) => each.startsWith(`${dimension}=`));
  return (part?.slice(dimension.length + 1) ?? first).slice(0, 13);
}

function HeatMap({ asset, summary, onZoom, isZoomed }: { asset: string; summary: Summary; onZoom: (from: number, count: number | undefined) => void; isZoomed: boolean }) {
  const [brush, setBrush] = useState<{ from: number; to: number; isDown: boolean } | undefined>();
  const rows = summary.rows.length;
  const columns = Math.ceil(summary.buckets.length / rows);
  const folds = rows === 1 && columns > FOLD;
  const perLine = folds ? FOLD : columns;
  const lines = folds ? Math.ceil(columns / FOLD) : rows;
  const label = rows > 1 || folds ? LABEL : 0;
  const cell = perLine <= FEW ? LARGE_CELL : CELL;
  const step = cell + GAP;
  // Names of columns stand as far from one another as they are long, the last of them at the end.
  const every = Math.ceil(BETWEEN_NAMES / step);
  const named = folds ? [] : Array.from({ length: columns }, (_, column) => column).filter((column) => column % every === 0 && columns - column >= every);
  const place = (index: number) => {
    const column = Math.floor(index / rows);
    return folds ? { x: column % perLine, y: Math.floor(column / perLine) } : { x: column, y: index % rows };
  };
  const [low, high] = brush === undefined ? [-1, -1] : [Math.min(brush.from, brush.to), Math.max(brush.from, brush.to)];
  const brushed = useMemo(() => {
    if (low < 0) return [];
    if (rows === 1) return summary.buckets.slice(low, high + 1);
    const [c1, c2] = [Math.floor(low / rows), Math.floor(high / rows)];
    const [r1, r2] = [Math.min((brush?.from ?? 0) % rows, (brush?.to ?? 0) % rows), Math.max((brush?.from ?? 0) % rows, (brush?.to ?? 0) % rows)];
    return summary.buckets.filter((_, index) => {
      const [column, row] = [Math.floor(index / rows), index % rows];
      return column >= c1 && column <= c2 && row >= r1 && row <= r2;
    });
  }, [low, high, rows, summary.buckets, brush]);
  const isBrushed = new Set(brushed);
  const total = brushed.reduce((sum, bucket) => sum + bucket.partitions, 0);
  const act = (asBackfill: boolean) => {
    const singles = brushed.filter((bucket) => bucket.last == null);
    if (rows === 1 && brushed.length > 1) {
      const [first, last] = [brushed[0], brushed.at(-1)];
      materializeStore.open({ asBackfill, selection: dotted(asset), ranges: [`${first?.first ?? ""}..${last?.last ?? last?.first ?? ""}`] });
    } else materializeStore.open({ asBackfill, selection: dotted(asset), keys: singles.map((bucket) => bucket.first), ranges: brushed.filter((bucket) => bucket.last != null).map((bucket) => `${bucket.first}..${bucket.last ?? ""}`) });
  };
  const move = (event: KeyboardEvent) => {
    // One step down is a row of partitions, or a line of one that is folded.
    const [across, down] = rows > 1 ? [rows, 1] : [1, folds ? perLine : 0];
    const steps: Record<string, number> = { ArrowRight: across, ArrowLeft: -across, ArrowDown: down, ArrowUp: -down };
    if (event.key === "Escape" && brush !== undefined) setBrush(undefined);
    else if (event.key === "Enter" && brushed.length > 0) act(false);
    else if (steps[event.key] !== undefined) {
      event.preventDefault();
      const to = Math.min(summary.buckets.length - 1, Math.max(0, brush === undefined ? 0 : brush.to + (steps[event.key] ?? 0)));
      setBrush({ from: event.shiftKey && brush !== undefined ? brush.from : to, to, isDown: false });
    }
  };
  const [life, setLife] = useState<"wipe" | "mark" | undefined>();
  const undo = useUndo(asset);
  const chosen = (): Chosen => ({
    keys: brushed.filter((bucket) => bucket.last == null).map((bucket) => bucket.first),
    ranges: brushed.filter((bucket) => bucket.last != null).map((bucket) => `${bucket.first}..${bucket.last ?? ""}`),
    total,
  });
  const indexAt = (element: EventTarget): number | undefined => (element instanceof SVGElement && element.dataset["index"] !== undefined ? Number(element.dataset["index"]) : undefined);
  if (summary.buckets.length === 0)
    return (
      <Empty title="No partitions exist yet">
        <p>Partitions of time come with time; dynamic ones are added with servo partition add.</p>
      </Empty>
    );
  const width = label + perLine * step;
  const height = lines * step + (folds ? 0 : NAMES);
  return (
    <div className="body stack" style={{ gap: 10 }}>
      <div className="heat" tabIndex={0} role="group" aria-label={`Heat map: ${plural(summary.total * rows, "partition")}. Arrow keys choose, Shift extends, Enter materializes.`} onKeyDown={move}>
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${plural(summary.buckets.length, "bucket")} of ${plural(summary.total * rows, "partition")}`}
          onPointerDown={(event) => {
            const index = indexAt(event.target);
            if (index !== undefined) setBrush({ from: index, to: index, isDown: true });
          }}
          onPointerMove={(event) => {
            const index = indexAt(event.target);
            if (brush?.isDown === true && index !== undefined && index !== brush.to) setBrush({ ...brush, to: index });
          }}
          onPointerUp={() => {
            if (brush !== undefined) setBrush({ ...brush, isDown: false });
          }}
        >
          {rows > 1
            ? summary.rows.map((row, index) => (
                <text key={row} x={label - 8} y={index * step + cell / 2 + 4} textAnchor="end" fontSize="11" fill="var(--muted)">
                  {row.slice(0, 14)}
                </text>
              ))
            : null}
          {folds
            ? Array.from({ length: lines }, (_, line) => (
                <text key={line} x={label - 8} y={line * step + cell / 2 + 4} textAnchor="end" fontSize="11" fill="var(--muted)">
                  {summary.buckets[line * FOLD]?.first.slice(0, 14)}
                </text>
              ))
            : null}
          {named.map((column) => (
            <text key={column} x={label + column * step} y={lines * step + 12} fontSize="11" fill="var(--muted)">
              {columnName(summary, column)}
            </text>
          ))}
          {folds || columns < 2 ? null : (
            <text x={width - GAP} y={lines * step + 12} textAnchor="end" fontSize="11" fill="var(--muted)">
              {columnName(summary, columns - 1)}
            </text>
          )}
          {summary.buckets.map((bucket, index) => {
            const at = place(index);
            const { fill, opacity } = fillOf(bucket);
            return (
              <rect key={index} className="cell" data-index={index} x={label + at.x * step} y={at.y * step} width={cell} height={cell} rx="2" fill={fill} fillOpacity={opacity} stroke={isBrushed.has(bucket) ? "var(--accent)" : "none"} strokeWidth="2">
                <title>{bucketText(bucket)}</title>
              </rect>
            );
          })}
        </svg>
      </div>
      <div className="row wrap" style={{ fontSize: 13, minHeight: 30 }}>
        {brushed.length === 0 ? (
          <span className="muted">
            {plural(summary.total * rows, "partition")} by {summary.dimension}
            {summary.row_dimension == null ? "" : ` and ${summary.row_dimension}`}
            {summary.step > 1 ? `, ${count(summary.step)} to a cell` : ""}. Drag over cells to select, or use the arrow keys.
          </span>
        ) : (
          <>
            <span className="mono">
              {brushed[0]?.first}
              {total > 1 ? ` … ${brushed.at(-1)?.last ?? brushed.at(-1)?.first ?? ""}` : ""}
            </span>
            <Act
              needs="runs.trigger"
              className="button small primary"
              onClick={() => {
                act(false);
              }}
            >
              Materialize {plural(total, "partition")}…
            </Act>
            <Act
              needs="runs.trigger"
              className="button small"
              onClick={() => {
                act(true);
              }}
            >
              Backfill…
            </Act>
            <Act
              needs="partitions.change"
              className="button small"
              onClick={() => {
                setLife("mark");
              }}
            >
              Mark…
            </Act>
            <Act
              needs="partitions.change"
              className="button small danger"
              onClick={() => {
                setLife("wipe");
              }}
            >
              Wipe…
            </Act>
            {summary.step > 1 && rows >= 1 ? (
              <button
                type="button"
                className="button small"
                onClick={() => {
                  const [first, last] = [Math.floor(low / rows), Math.floor(high / rows)];
                  setBrush(undefined);
                  onZoom(summary.from + first * summary.step, (last - first + 1) * summary.step);
                }}
              >
                Zoom in
              </button>
            ) : null}
            <button
              type="button"
              className="button small quiet"
              onClick={() => {
                setBrush(undefined);
              }}
            >
              Clear
            </button>
          </>
        )}
        {brushed.length === 0 ? (
          <Act
            needs="partitions.change"
            className="button small quiet"
            disabled={undo.isPending}
            title="Gives partitions back what they were before the last wipe or mark"
            onClick={() => {
              undo.mutate();
            }}
          >
            Undo the last wipe or mark
          </Act>
        ) : null}
        {life === "wipe" ? (
          <WipeDialog
            asset={asset}
            chosen={chosen()}
            onClose={() => {
              setLife(undefined);
            }}
          />
        ) : null}
        {life === "mark" ? (
          <MarkDialog
            asset={asset}
            chosen={chosen()}
            onClose={() => {
              setLife(undefined);
            }}
          />
        ) : null}
        {isZoomed ? (
          <button
            type="button"
            className="button small"
            onClick={() => {
              onZoom(0, undefined);
            }}
          >
            Show all
          </button>
        ) : null}
      </div>
    </div>
  );
}

const COLUMNS = "minmax(140px, 2fr) minmax(150px, 1fr) 110px 130px";

function PartitionList({ asset }: { asset: string }) {
  const [status, setStatus] = useParam("status");
  const query = useInfiniteQuery(partitionsQuery(asset, status));
  const { items, more } = usePages(query);
  return (
    <Panel
      title="Newest first"
      label="List of partitions"
      aside={
        <select
          className="field"
          style={{ height: 26, marginLeft: "auto" }}
          aria-label="Status"
          value={status}
          onChange={(event) => {
            setStatus(event.target.value);
          }}
        >
          {STATUSES.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      }
    >
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={6} /> : null}
      {query.isSuccess && items.length === 0 ? query.hasNextPage ? <p className="empty"><button type="button" className="button small" onClick={more}>Look further</button></p> : <Empty title="No partition is like that" /> : null}
      {items.length > 0 ? (
        <VirtualList
          label="Partitions"
          items={items}
          columns={COLUMNS}
          height="420px"
          id={(item) => item.partition_key ?? ""}
          href={(item) => (item.last_attempt_run_id == null ? dataHref(asset, item.partition ?? "") : runHref(item.last_attempt_run_id))}
          more={more}
          head={
            <>
              <span>Partition</span>
              <span>State</span>
              <span>Last attempt</span>
              <span>Run</span>
            </>
          }
          row={(item) => (
            <>
              <Link href={dataHref(asset, item.partition ?? "")} className="mono" title="Show its data">
                {item.partition}
              </Link>
              {item.stale != null && item.status === "MATERIALIZED" ? <State state="STALE" word={`Stale: ${item.stale.toLowerCase().replaceAll("_", " ")}`} /> : <State state={item.status === "NEVER_MATERIALIZED" && item.last_attempt_outcome === "FAILED" ? "FAILED" : item.status} {...(item.status === "NEVER_MATERIALIZED" && item.last_attempt_outcome === "FAILED" ? { word: "Never succeeded" } : {})} />}
              <Ago at={item.last_attempt_at ?? undefined} />
              {item.last_attempt_run_id == null ? (
                <span className="muted">–</span>
              ) : (
                <Link href={runHref(item.last_attempt_run_id)} className="mono">
                  {shortRun(item.last_attempt_run_id)}
                </Link>
              )}
            </>
          )}
        />
      ) : null}
    </Panel>
  );
}
