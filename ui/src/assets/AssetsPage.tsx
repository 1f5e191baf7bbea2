// Assets as a graph or a list. What the selection box selects is what is shown, and what "Materialize" takes.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useDeferredValue, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { Link } from "wouter";
import { answer, api } from "../api/client";
import { assetQuery, assetsQuery, graphQuery, quarantineQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { assetHref, count, dotted, plural } from "../parts/format";
import { Empty, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Tones } from "../parts/State";
import { Ago } from "../parts/Time";
import { useDebounced } from "../parts/useDebounced";
import { VirtualList } from "../parts/VirtualList";
import { Graph } from "./Graph";
import { cardsOf, groupOf } from "./grouping";
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

const COLUMNS = "minmax(200px, 2.2fr) minmax(120px, 1fr) minmax(90px, 1.1fr) 96px 64px minmax(80px, 1fr)";
/** Wide windows show more, not wider. */
const MORE_COLUMNS = `${COLUMNS} 120px minmax(100px, 1fr)`;
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
  const query = useInfiniteQuery(assetsQuery(selection, attention === "true"));
  const quarantined = useQuarantined();
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return (
    <div style={{ padding: "12px 16px", overflow: "auto" }} className="stack">
      <label className="row" style={{ fontSize: 13 }}>
        <input
          type="checkbox"
          checked={attention === "true"}
          onChange={(event) => {
            setAttention(event.target.checked ? "true" : "");
          }}
        />
        Only what needs attention
      </label>
      {query.error !== null ? <ProblemBox error={query.error} again={() => void query.refetch()} /> : null}
      {query.isPending ? <Skeleton rows={10} /> : null}
      {query.isSuccess && items.length === 0 ? selection === "" && attention === "" ? <NoAssets /> : <Empty title={attention === "true" ? "Nothing needs attention" : "The selection is empty"} /> : null}
      {items.length > 0 ? (
        <section className="panel">
          <VirtualList
            label="Assets"
            items={items}
            columns={isWide ? MORE_COLUMNS : COLUMNS}
            id={(asset) => asset.asset_key}
            href={(asset) => assetHref(asset.asset_key)}
            more={more}
            head={
              <>
                <span>Asset</span>
                <span>State</span>
                <span>Partitions</span>
                <span>Last made</span>
                <span>Checks</span>
                <span>Group</span>
                {isWide ? (
                  <>
                    <span>Freshness</span>
                    <span>Owner</span>
                  </>
                ) : null}
              </>
            }
            row={(asset) => {
              const status = statusOf(knownOf(asset), quarantined);
              return (
                <>
                  <Link href={assetHref(asset.asset_key)} className="mono">
                    {dotted(asset.asset_key)}
                  </Link>
                  <Tones tone={status.tone} title={status.why}>
                    {status.word}
                  </Tones>
                  <span className="row">{asset.partitioned ? <><StateBar totals={asset.partitions} /><span className="muted">{count(asset.partitions.total)}</span></> : <span className="muted">–</span>}</span>
                  <Ago at={asset.health?.last_success_at ?? undefined} />
                  <span>{asset.checks === 0 ? <span className="muted">–</span> : <span style={asset.health?.last_check_passed === false ? { color: "var(--failed)" } : undefined}>{asset.health?.last_check_passed === false ? "failed" : asset.health?.last_check_passed === true ? "passed" : count(asset.checks)}</span>}</span>
                  <span className="muted">{asset.group ?? groupOf({ asset_key: asset.asset_key, partitions: asset.partitions })}</span>
                  {isWide ? (
                    <>
                      <span className="muted">{asset.late_since != null ? <span style={{ color: "var(--stale)" }}>late <Ago at={asset.late_since} /></span> : asset.freshness == null ? "–" : <>late <Ago at={asset.freshness.fails_at} /></>}</span>
                      <span className="muted">{(asset.owners ?? []).join(", ") || "–"}</span>
                    </>
                  ) : null}
                </>
              );
            }}
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
