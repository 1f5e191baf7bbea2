// Lineage by execution: this materialization was made from those.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { RequestFailed, type Schemas } from "../api/client";
import { lineageQuery } from "../api/queries";
import { assetHref, count, dotted, plural, runHref, shortRun } from "../parts/format";
import { Empty, Panel, Shown } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Ago } from "../parts/Time";

type Edge = Schemas["LineageEdge"];
const MOST = 200;

export function Lineage({ asset, detail }: { asset: string; detail: Schemas["AssetDetail"] }) {
  const [direction, setDirection] = useParam("direction", "up");
  const [partition, setPartition] = useParam("partition");
  const query = useQuery(lineageQuery(asset, direction === "down" ? "down" : "up", partition));
  const isNever = query.error instanceof RequestFailed && query.error.problem?.code === "never_materialized";
  return (
    <div className="stack">
      <div className="row wrap">
        <div className="segments" role="group" aria-label="Direction">
          {[
            ["up", "Made from"],
            ["down", "Made of it"],
          ].map(([value, name]) => (
            <button
              key={value}
              type="button"
              aria-pressed={direction === value}
              onClick={() => {
                setDirection(value ?? "up");
              }}
            >
              {name}
            </button>
          ))}
        </div>
        {detail.partitioned ? (
          <input
            key={partition}
            className="field"
            aria-label="Partition"
            placeholder={`partition, such as ${detail.last_partition ?? ""}`}
            defaultValue={partition}
            onKeyDown={(event) => {
              if (event.key === "Enter") setPartition(event.currentTarget.value.trim());
            }}
          />
        ) : null}
      </div>
      {isNever ? (
        <Empty title="Never made">
          <p>When it is made, this shows exactly what was read.</p>
        </Empty>
      ) : (
        <Panel label="Lineage" title={query.data === undefined ? "Lineage" : `${dotted(asset)}${query.data.partition == null ? "" : ` [${query.data.partition}]`}`} aside={<span className="muted">{query.data === undefined ? "" : plural(query.data.edges.length, "step")}</span>}>
          <Shown query={query}>{(data) => (data.edges.length === 0 ? <Empty title={direction === "up" ? "It reads nothing" : "Nothing was made of it yet"} /> : <Edges edges={data.edges} isUp={direction !== "down"} />)}</Shown>
        </Panel>
      )}
    </div>
  );
}

const text = (key: string | null | undefined) => (key == null ? "" : key.replace(/(^|,)\w+=\w:/g, "$1"));

function Edges({ edges, isUp }: { edges: readonly Edge[]; isUp: boolean }) {
  const shown = useMemo(() => edges.slice(0, MOST), [edges]);
  return (
    <div className="scroll">
      <table className="table">
        <thead>
          <tr>
            <th className="right">Steps</th>
            <th>{isUp ? "Was read" : "Was made"}</th>
            <th>{isUp ? "To make" : "From"}</th>
            <th>Run</th>
            <th>When</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((edge, index) => {
            const up = { key: edge.upstream_asset_key, partition: `${text(edge.upstream_partition_key)}${edge.upstream_last_partition_key == null ? "" : ` … ${text(edge.upstream_last_partition_key)}`}${edge.upstream_count > 1 ? ` (${count(edge.upstream_count)})` : ""}` };
            const down = { key: edge.asset_key, partition: text(edge.partition_key) };
            const [first, second] = isUp ? [up, down] : [down, up];
            return (
              <tr key={index}>
                <td className="right">{edge.depth}</td>
                <td className="mono">
                  <Link href={`${assetHref(first.key)}?tab=lineage`}>{dotted(first.key)}</Link> <span className="muted">{first.partition}</span>
                </td>
                <td className="mono">
                  {dotted(second.key)} <span className="muted">{second.partition}</span>
                </td>
                <td className="mono">
                  <Link href={runHref(edge.run_id)}>{shortRun(edge.run_id)}</Link>
                </td>
                <td>
                  <Ago at={edge.materialized_at} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {edges.length > MOST ? <p className="muted" style={{ padding: 12 }}>The nearest {MOST} of {count(edges.length)}.</p> : null}
    </div>
  );
}
