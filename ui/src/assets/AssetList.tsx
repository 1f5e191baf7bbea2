// The list of what is selected: sorted by the server, by group and state if one wants, a page at a time.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useSyncExternalStore, type ReactNode } from "react";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { assetsQuery } from "../api/queries";
import { Check, Choose, type Choices } from "../parts/fields";
import { assetHref, count, dotted, plural } from "../parts/format";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Tones } from "../parts/State";
import { usePages } from "../parts/Table";
import { Ago, Since } from "../parts/Time";
import { VirtualList } from "../parts/VirtualList";
import { groupOf, rowsOf, selectionOf } from "./grouping";
import { NoAssets } from "./NoAssets";
import { Sparkline } from "./Sparkline";
import { StateBar } from "./StateBar";
import { knownOf, statusOf } from "./status";
import { useQuarantined } from "./useQuarantined";

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

interface ShownColumn {
  name: string;
  width: string;
  /** Shown in wide windows only: these show more columns, not wider ones. */
  isWide?: boolean;
  cell: (asset: Asset, quarantined: ReadonlySet<string>) => ReactNode;
}

const NONE = <span className="muted">–</span>;
const CHECKS: Record<string, string> = { true: "passed", false: "failed" };

const LIST: ShownColumn[] = [
  {
    name: "Asset",
    width: "minmax(180px, 1.8fr)",
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
  { name: "Freshness", width: "110px", isWide: true, cell: (asset) => (asset.late_since != null ? <span style={{ color: "var(--stale)" }}>late for <Since at={asset.late_since} /></span> : asset.freshness == null ? NONE : <span className="muted">late <Ago at={asset.freshness.fails_at} /></span>) },
  { name: "Last made", width: "92px", cell: (asset) => <Ago at={asset.health?.last_success_at ?? undefined} /> },
  { name: "Takes", width: "156px", cell: (asset) => <Sparkline durations={asset.health?.durations_ms ?? []} /> },
  { name: "Checks", width: "64px", cell: (asset) => (asset.checks === 0 ? NONE : <span style={asset.health?.last_check_passed === false ? { color: "var(--failed)" } : undefined}>{CHECKS[String(asset.health?.last_check_passed)] ?? count(asset.checks)}</span>) },
  { name: "Automation", width: "minmax(150px, 1.2fr)", cell: (asset) => <Automations of={asset.automation ?? []} asset={asset.asset_key} /> },
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
      <Link href={href}>
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

export function AssetList({ selection }: { selection: string }) {
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
