// The graph of what is selected: groups open and closed, and beside it what is known of the asset that is pressed.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import { assetQuery, graphQuery } from "../api/queries";
import { materializeStore } from "../materialize/open";
import { Act } from "../parts/Act";
import { assetHref, count, dotted, plural } from "../parts/format";
import { Empty, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Tones } from "../parts/State";
import { Ago } from "../parts/Time";
import { Graph } from "./Graph";
import { cardsOf } from "./grouping";
import { NoAssets } from "./NoAssets";
import { StateBar } from "./StateBar";
import { knownOf, statusOf } from "./status";
import { useQuarantined } from "./useQuarantined";

/** Graphs with more assets begin with closed groups. */
const OPEN_UP_TO = 120;

export function GraphView({ selection }: { selection: string }) {
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
                <Act
                  needs="runs.trigger"
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
