// Why an asset is stale, in a sentence that leads to the cause.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { whyStaleQuery } from "../api/queries";
import { assetHref, dotted } from "../parts/format";
import { Mark } from "../parts/State";
import { Ago } from "../parts/Time";

type Cause = Schemas["StalePartition"];

const named = (asset: string, partition: string | null | undefined) => `${dotted(asset)}${partition == null ? "" : `[${partition}]`}`;

/** Where the cause can be looked at: the asset upstream that changed or is stale itself, or the asset's own versions. */
export function causeHref(cause: Cause): string {
  if (cause.upstream_asset_key != null) return `${assetHref(cause.upstream_asset_key)}?tab=history`;
  return `${assetHref(cause.asset_key)}?tab=${cause.reason === "CODE_CHANGED" ? "definition" : "history"}`;
}

export function WhyStale({ asset }: { asset: string }) {
  const { data } = useQuery(whyStaleQuery(asset));
  if (data?.stale !== true) return null;
  const { cause } = data;
  return (
    <section className="notice stack" style={{ gap: 6 }} aria-label="Why it is stale">
      <div className="row wrap">
        <Mark tone="stale" />
        <span>{data.sentence}</span>
        {cause?.stale_since == null ? null : (
          <span className="muted">
            since <Ago at={cause.stale_since} />
          </span>
        )}
        {cause == null ? null : (
          <Link className="button small" href={causeHref(cause)}>
            {cause.upstream_asset_key == null ? (cause.reason === "CODE_CHANGED" ? "What changed" : "History") : `See ${named(cause.upstream_asset_key, cause.upstream_partition)}`}
          </Link>
        )}
      </div>
      {(cause?.because_of ?? []).slice(0, 3).map((each) => (
        <div key={named(each.asset_key, each.partition)} className="row wrap muted" style={{ paddingLeft: 22 }}>
          <Link href={assetHref(each.asset_key)} className="mono">
            {named(each.asset_key, each.partition)}
          </Link>
          <span>{each.why}</span>
        </div>
      ))}
    </section>
  );
}
