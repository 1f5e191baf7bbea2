// How old the data of assets is that may not become older than they say: late ones first.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { freshnessQuery } from "../api/queries";
import { assetHref, coarse, dotted } from "../parts/format";
import { Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { Mark, type Tone } from "../parts/State";
import { Ago, Since } from "../parts/Time";

type Fresh = Schemas["AssetFreshness"];

const MOST = 8;

/** The most pressing first: those that are late the longest, then those that are late the soonest. */
export function bySeverity(late: readonly Fresh[], soon: readonly Fresh[], well: readonly Fresh[]): Fresh[] {
  const by = (time: (each: Fresh) => string) => (a: Fresh, b: Fresh) => Date.parse(time(a)) - Date.parse(time(b));
  return [...[...late].sort(by((each) => each.since)), ...[...soon].sort(by((each) => each.fails_at)), ...[...well].sort(by((each) => each.fails_at))];
}

const TONES: Record<string, [Tone, string]> = { FAIL: ["stale", "late"], WARN: ["retry", "late soon"], PASS: ["succeeded", "fresh"], UNKNOWN: ["missing", "not known yet"] };

export function Freshness() {
  const late = useQuery(freshnessQuery("FAIL", MOST));
  const soon = useQuery(freshnessQuery("WARN", MOST));
  const well = useQuery(freshnessQuery("PASS", MOST));
  const queries = [late, soon, well];
  const failed = queries.find((each) => each.error !== null && each.data === undefined);
  const items = bySeverity(late.data?.items ?? [], soon.data?.items ?? [], well.data?.items ?? []);
  const hasMore = items.length > MOST || queries.some((each) => each.data?.next_cursor != null);
  return (
    <Panel title="Freshness" label="Freshness" aside={hasMore ? <Link href="/assets?view=list" className="away">All assets</Link> : undefined}>
      {failed !== undefined ? (
        <div style={{ padding: 12 }}>
          <ProblemBox error={failed.error} again={() => void failed.refetch()} />
        </div>
      ) : queries.some((each) => each.isPending) ? (
        <Skeleton rows={2} />
      ) : items.length === 0 ? (
        <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>
          No asset says how old its data may become: <code>freshness=servo.Freshness(max_lag="26h")</code>.
        </p>
      ) : (
        <ul className="attention">
          {items.slice(0, MOST).map((each) => (
            <Row key={each.asset_key} of={each} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Row({ of }: { of: Fresh }) {
  const [tone, word] = TONES[of.status] ?? ["missing", of.status.toLowerCase()];
  return (
    <li>
      <Mark tone={tone} label={word} />
      <div className="what ellipsis">
        <Link href={assetHref(of.asset_key)} className="mono">
          {dotted(of.asset_key)}
        </Link>{" "}
        <span className="muted">{of.lag_ms == null ? "never made" : `${coarse(of.lag_ms)} old`}</span>
      </div>
      <span className="nowrap" style={{ color: `var(--${tone})` }}>
        {of.status === "FAIL" ? (
          <>
            late for <Since at={of.since} />
          </>
        ) : (
          <>
            late <Ago at={of.fails_at} />
          </>
        )}
      </span>
    </li>
  );
}
