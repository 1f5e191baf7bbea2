// Assets as a graph or a list. What the selection box selects is what is shown, and what "Materialize" takes.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useDeferredValue, useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from "react";
import { Link } from "wouter";
import { answer, api, type Schemas } from "../api/client";
import { assetQuery, assetsQuery, graphQuery, quarantineQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { Check, Choose, type Choices } from "../parts/fields";
import { assetHref, count, dotted, plural } from "../parts/format";
import { Empty, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Tones } from "../parts/State";
import { Ago } from "../parts/Time";
import { useDebounced } from "../parts/useDebounced";
import { VirtualList } from "../parts/VirtualList";
import { usePages } from "../parts/Table";
import { Graph } from "./Graph";
import { cardsOf, groupOf, rowsOf, selectionOf } from "./grouping";
import { Sparkline } from "./Sparkline";
import { StateBar } from "./StateBar";
import { knownOf, statusOf } from "./status";
import { Act } from "../parts/Act";

/** Graphs with more assets begin with closed groups. */
const OPEN_UP_TO = 120;

export function useQuarantined(): ReadonlySet<string> {
  const { data } = useQuery(quarantineQuery);
  return useMemo(() => new Set(data?.items.map((item) => item.asset_key)), [data]);
}

export default function AssetsPage() {
  const [view] = useParam("view", "graph");
  const [selection, setSelection] = useParam("selection");
  const [text, setText] = useState(selection);
  const rested = useDebounced(text.trim());
  useEffect(() => {
    setSelection(rested);
  }, [rested, setSelection]);
  return (
    <div className="page full">
      <div className="toolbar">
        <h1>Assets</h1>
        <div className="segments" role="group" aria-label="View">
          {(["graph", "list"] as const).map((each) => (
            <Link key={each} href={`/assets?${new URLSearchParams({ ...(each === "graph" ? {} : { view: each }), ...(selection === "" ? {} : { selection }) }).toString()}`} aria-current={view === each ? "page" : undefined}>
              {each === "graph" ? "Graph" : "List"}
            </Link>
          ))}
        </div>
        <SelectionBox text={text} onChange={setText} />
        <span className="grow" />
        <Act needs="runs.trigger"
         
          className="button primary"
          onClick={() => {
            materializeStore.open({ selection: selection === "" ? "*" : selection });
          }}
        >
          {selection === "" ? "Materialize all…" : "Materialize selected…"}
        </Act>
      </div>
      {view === "graph" ? <GraphView selection={selection} /> : <ListView selection={selection} />}
    </div>
  );
}

function SelectionBox({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  // Completes the last word, from a few assets that match it.
  const word = useDeferredValue(/[\w.*-]+$/.exec(text)?.[0] ?? "");
  const { data } = useQuery({
    queryKey: ["assets", "completion", word],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { limit: 12, contains: word } }, signal })),
    enabled: /^[\w.-]+$/.test(word),
    retry: false,
  });
  const before = text.slice(0, text.length - word.length);
  return (
    <>
      <input
        className="field mono"
        data-search=""
        style={{ flex: "0 1 420px" }}
        placeholder="selection: +sales.weekly, tag:daily, raw.*"
        aria-label="Selection of assets"
        list="selection-words"
        value={text}
        spellCheck={false}
        onChange={(event) => {
          onChange(event.target.value);
        }}
      />
      <datalist id="selection-words">
        {data?.items.map((asset) => (
          <option key={asset.asset_key} value={before + dotted(asset.asset_key)} />
        ))}
      </datalist>
    </>
  );
}

function GraphView({ selection }: { selection: string }) {
  const query = useQuery(graphQuery(selection));
  const quarantined = useQuarantined();
  const [selected, setSelected] = useParam("asset");
  const [opened, setOpened] = useParam("open");
  const [closed, setClosed] = useParam("closed");
  const isLarge = (query.data?.nodes.length ?? 0) > OPEN_UP_TO;
  const openSet = useMemo(() => new Set(opened.split(",").filter(Boolean)), [opened]);
  const closedSet = useMemo(() => new Set(closed.split(",").filter(Boolean)), [closed]);
  const isClosed = useCallback((group: string) => (isLarge ? !openSet.has(group) : closedSet.has(group)), [isLarge, openSet, closedSet]);
  const cards = useMemo(() => (query.data === undefined ? undefined : cardsOf(query.data, isClosed, quarantined)), [query.data, isClosed, quarantined]);
  const select = useCallback(
    (id: string) => {
      setSelected(id);
    },
    [setSelected],
  );
  const toggle = useCallback(
    (group: string) => {
      const flip = (set: ReadonlySet<string>) => (set.has(group) ? [...set].filter((each) => each !== group) : [...set, group]).join(",");
      if (isLarge) setOpened(flip(openSet));
      else setClosed(flip(closedSet));
    },
    [isLarge, openSet, closedSet, setOpened, setClosed],
  );
  if (query.error !== null)
    return (
      <div style={{ padding: 16 }}>
        <ProblemBox error={query.error} again={() => void query.refetch()} />
      </div>
    );
  if (cards === undefined) return <Skeleton rows={8} />;
  if (cards.cards.length === 0) return selection === "" ? <NoAssets /> : <Empty title="The selection is empty" />;
  return (
    <>
      {cards.groups.size > 1 ? (
        <div className="toolbar" style={{ padding: "6px 16px", gap: 6 }}>
          {[...cards.groups].slice(0, 24).map(([group, size]) => (
            <button
              key={group}
              type="button"
              className="chip"
              style={{ background: "transparent", cursor: "pointer" }}
              aria-pressed={!isClosed(group)}
              title={isClosed(group) ? "Open the group" : "Close the group to one card"}
              onClick={() => {
                toggle(group);
              }}
            >
              {isClosed(group) ? "▸" : "▾"} {group} {count(size)}
            </button>
          ))}
          {cards.groups.size > 24 ? <span className="muted">and {count(cards.groups.size - 24)} more groups</span> : null}
        </div>
      ) : null}
      <div style={{ position: "relative", flex: 1, minHeight: 0, display: "flex" }}>
        <Graph cards={cards.cards} edges={cards.edges} selected={selected} onSelect={select} onOpen={toggle} />
        {selected === "" ? null : (
          <Side
            key={selected}
            asset={selected}
            onClose={() => {
              setSelected("");
            }}
          />
        )}
      </div>
      <span className="sr" role="status">
        {plural(query.data?.nodes.length ?? 0, "asset")} shown
      </span>
    </>
  );
}

function Side({ asset, onClose }: { asset: string; onClose: () => void }) {
  const query = useQuery(assetQuery(asset));
  const quarantined = useQuarantined();
  return (
    <aside className="side" aria-label={dotted(asset)}>
      <div className="row">
        <h2 className="grow ellipsis" style={{ fontSize: 15 }}>
          <Link href={assetHref(asset)}>{dotted(asset)}</Link>
        </h2>
        <button type="button" className="button quiet small" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      <Shown query={query}>
        {(data) => {
          const status = statusOf(knownOf(data), quarantined);
          return (
            <>
              <Tones tone={status.tone} title={status.why}>
                {status.word}
              </Tones>
              <p className="muted">{status.why}</p>
              {data.description == null ? null : <p>{data.description}</p>}
              <dl className="facts">
                {data.partitioned ? (
                  <>
                    <dt>Partitions</dt>
                    <dd>
                      {count(data.partitions.materialized)} of {count(data.partitions.total)} <StateBar totals={data.partitions} />
                    </dd>
                  </>
                ) : null}
                <dt>Last made</dt>
                <dd>
                  <Ago at={data.health?.last_success_at ?? undefined} />
                </dd>
                <dt>Checks</dt>
                <dd>{data.checks === 0 ? "none" : `${count(data.checks)}${data.health?.last_check_passed == null ? "" : data.health.last_check_passed ? ", passed" : ", failed"}`}</dd>
                <dt>Reads</dt>
                <dd>{data.upstream.length === 0 ? "nothing" : data.upstream.map((key) => <div key={key}><Link href={assetHref(key)}>{dotted(key)}</Link></div>)}</dd>
                <dt>Read by</dt>
                <dd>{data.downstream.length === 0 ? "nothing" : data.downstream.map((key) => <div key={key}><Link href={assetHref(key)}>{dotted(key)}</Link></div>)}</dd>
              </dl>
              <div className="row wrap">
                <Act needs="runs.trigger"
                 
                  className="button primary"
                  disabled={data.external}
                  title={data.external ? "It is made outside of Servo" : undefined}
                  onClick={() => {
                    materializeStore.open({ selection: dotted(asset) });
                  }}
                >
                  Materialize…
                </Act>
                <Link href={assetHref(asset)} className="button">
                  Open
                </Link>
                {data.active == null ? null : (
                  <Link href={`/runs/${data.active.run_id}`} className="button">
                    Watch run
                  </Link>
                )}
              </div>
            </>
          );
        }}
      </Shown>
    </aside>
  );
}

const SORTS: Choices = [
  ["", "By name"],
  ["group", "By group"],
  ["-last_success_at", "Newest first"],
  ["last_success_at", "Oldest first"],
  ["-duration", "Longest first"],
  ["duration", "Shortest first"],
];

const STATES: Choices = [
  ["", "Any state"],
  ["failed", "Failed"],
  ["stale", "Stale or late"],
  ["blocked", "Checks or quarantine"],
  ["running", "Running"],
  ["queued", "Waiting"],
  ["missing", "Never made"],
  ["succeeded", "Materialized"],
];
/** Assets of a state that are enough for a start, and pages that are looked through for them. */
const ENOUGH = 30;
const MOST_PAGES = 10;

type Asset = Schemas["Asset"];

interface Shown {
  name: string;
  width: string;
  /** Shown in wide windows only: these show more columns, not wider ones. */
  isWide?: boolean;
  cell: (asset: Asset, quarantined: ReadonlySet<string>) => ReactNode;
}

const NONE = <span className="muted">–</span>;
const CHECKS: Record<string, string> = { true: "passed", false: "failed" };

const LIST: Shown[] = [
  {
    name: "Asset",
    width: "minmax(190px, 2.2fr)",
    cell: (asset) => (
      <Link href={assetHref(asset.asset_key)} className="mono" title={dotted(asset.asset_key)}>
        {dotted(asset.asset_key)}
      </Link>
    ),
  },
  {
    name: "State",
    width: "minmax(120px, 1fr)",
    cell: (asset, quarantined) => {
      const status = statusOf(knownOf(asset), quarantined);
      return (
        <Tones tone={status.tone} title={status.why}>
          {status.word}
        </Tones>
      );
    },
  },
  {
    name: "Partitions",
    width: "minmax(96px, 1fr)",
    cell: (asset) =>
      asset.partitioned ? (
        <span className="row">
          <StateBar totals={asset.partitions} />
          <span className="muted">{count(asset.partitions.total)}</span>
        </span>
      ) : (
        NONE
      ),
  },
  { name: "Freshness", width: "110px", isWide: true, cell: (asset) => (asset.late_since != null ? <span style={{ color: "var(--stale)" }}>late <Ago at={asset.late_since} /></span> : asset.freshness == null ? NONE : <span className="muted">late <Ago at={asset.freshness.fails_at} /></span>) },
  { name: "Last made", width: "92px", cell: (asset) => <Ago at={asset.health?.last_success_at ?? undefined} /> },
  { name: "Takes", width: "156px", cell: (asset) => <Sparkline durations={asset.health?.durations_ms ?? []} /> },
  { name: "Checks", width: "64px", cell: (asset) => (asset.checks === 0 ? NONE : <span style={asset.health?.last_check_passed === false ? { color: "var(--failed)" } : undefined}>{CHECKS[String(asset.health?.last_check_passed)] ?? count(asset.checks)}</span>) },
  { name: "Automation", width: "minmax(110px, 1fr)", cell: (asset) => <Automations of={asset.automation ?? []} asset={asset.asset_key} /> },
  { name: "Group", width: "minmax(80px, 0.8fr)", isWide: true, cell: (asset) => <span className="muted">{asset.group ?? groupOf(asset)}</span> },
  { name: "Owner", width: "minmax(100px, 1fr)", isWide: true, cell: (asset) => <span className="muted">{(asset.owners ?? []).join(", ") || "–"}</span> },
];

/** What has an asset made without anybody asking: the first of it in words, the others counted. */
function Automations({ of, asset }: { of: readonly Schemas["AssetAutomation"][]; asset: string }) {
  const first = of[0];
  if (first === undefined) return NONE;
  const text = (each: Schemas["AssetAutomation"]) => `${each.kind} ${each.name}${each.paused ? ", paused" : ""}`;
  const href = first.kind === "condition" ? `${assetHref(asset)}?tab=automation` : `/automation/${first.kind}s/${encodeURIComponent(first.name)}`;
  return (
    <span title={of.map(text).join("\n")}>
      <Link href={href} className={of.every((each) => each.paused) ? "muted" : undefined}>
        {first.kind === "condition" ? "condition" : first.name}
      </Link>
      {first.paused ? <span className="muted"> paused</span> : null}
      {of.length > 1 ? <span className="muted"> +{of.length - 1}</span> : null}
    </span>
  );
}

const WIDE = "(min-width: 1500px)";

function useWide(): boolean {
  return useSyncExternalStore(
    (tell) => {
      const media = matchMedia(WIDE);
      media.addEventListener("change", tell);
      return () => {
        media.removeEventListener("change", tell);
      };
    },
    () => matchMedia(WIDE).matches,
  );
}

function ListView({ selection }: { selection: string }) {
  const isWide = useWide();
  const [attention, setAttention] = useParam("attention");
  const [sort, setSort] = useParam("sort");
  const query = useInfiniteQuery(assetsQuery(selection, { needs_attention: attention === "true", sort }));
  const quarantined = useQuarantined();
  const { items, more } = usePages(query);
  const [state, setState] = useParam("state");
  const found = useMemo(() => (state === "" ? items : items.filter((asset) => statusOf(knownOf(asset), quarantined).tone === state)), [items, state, quarantined]);
  const rows = useMemo(() => rowsOf(found, sort === "group"), [found, sort]);
  // The server does not know states of assets: a few pages are looked through, then it is asked whether to go on.
  const pages = query.data?.pages.length ?? 0;
  const looksOn = state !== "" && found.length < ENOUGH && pages > 0 && pages < MOST_PAGES && query.hasNextPage;
  useEffect(() => {
    if (looksOn) more();
  }, [looksOn, more, pages]);
  const columns = LIST.filter((column) => isWide || column.isWide !== true);
  return (
    <div style={{ padding: "12px 16px", overflow: "auto" }} className="stack">
      <div className="row wrap" style={{ gap: 16 }}>
        <Choose label="Order" value={sort} choices={SORTS} onChange={setSort} />
        <Choose label="State" value={state} choices={STATES} onChange={setState} />
        <Check
          checked={attention === "true"}
          onChange={(checked) => {
            setAttention(checked ? "true" : "");
          }}
        >
          Only what needs attention
        </Check>
      </div>
      {query.error !== null ? <ProblemBox error={query.error} again={() => void query.refetch()} /> : null}
      {query.isPending && query.error === null ? <Skeleton rows={10} /> : null}
      {query.isSuccess && items.length === 0 ? selection === "" && attention === "" ? <NoAssets /> : <Empty title={attention === "true" ? "Nothing needs attention" : "The selection is empty"} /> : null}
      {state !== "" && query.isSuccess && items.length > 0 ? (
        <div className="row wrap muted" role="status">
          {plural(found.length, "asset")} of {count(items.length)} that were looked at{query.hasNextPage ? (looksOn || query.isFetchingNextPage ? "; looking on…" : "") : ", which are all"}
          {query.hasNextPage && !looksOn ? (
            <button type="button" className="button small" disabled={query.isFetchingNextPage} onClick={more}>
              Look further
            </button>
          ) : null}
        </div>
      ) : null}
      {rows.length > 0 ? (
        <section className="panel">
          <VirtualList
            label="Assets"
            items={rows}
            columns={columns.map((column) => column.width).join(" ")}
            id={(row) => (row.asset === undefined ? `group ${row.group}` : row.asset.asset_key)}
            href={(row) => (row.asset === undefined ? `/assets?${new URLSearchParams({ view: "list", selection: selectionOf(row) }).toString()}` : assetHref(row.asset.asset_key))}
            more={state === "" ? more : undefined}
            version={(row) => (row.asset === undefined ? "" : statusOf(knownOf(row.asset), quarantined).word)}
            head={columns.map((column) => (
              <span key={column.name}>{column.name}</span>
            ))}
            row={({ asset, group, size }) =>
              asset === undefined ? (
                <span className="group-head">
                  {group} <span className="muted">{plural(size, "asset")} shown</span>
                </span>
              ) : (
                columns.map((column) => <span key={column.name}>{column.cell(asset, quarantined)}</span>)
              )
            }
          />
        </section>
      ) : null}
    </div>
  );
}

export function NoAssets() {
  return (
    <Empty title="No assets yet">
      <p>Save a Python function with @asset in your project; it appears here when you save.</p>
      <pre>{`import servo

@servo.asset(namespace="raw")
def readings() -> list[float]:
    return [3.5, 7.25, 5.0]`}</pre>
    </Empty>
  );
}
