// Lineage by execution: this materialization was made from those.
import { useQuery } from "@tanstack/react-query";
import { Fragment, useMemo, useState } from "react";
import { Link } from "wouter";
import { RequestFailed, type Schemas } from "../api/client";
import { lineageQuery } from "../api/queries";
import { Segments, type Choices } from "../parts/fields";
import { assetHref, count, dotted, plural, runHref, shortRun } from "../parts/format";
import { Empty, Panel, Shown } from "../parts/Panel";
import { useParam } from "../parts/params";
import { partitionText } from "../parts/partitionText";
import { Ago } from "../parts/Time";

type Edge = Schemas["LineageEdge"];

const DIRECTIONS: Choices = [
  ["up", "Made from"],
  ["down", "Made of it"],
];
const MOST = 200;

export function Lineage({ asset, detail }: { asset: string; detail: Schemas["AssetDetail"] }) {
  const [direction, setDirection] = useParam("direction", "up");
  const [partition, setPartition] = useParam("partition");
  const query = useQuery(lineageQuery(asset, direction === "down" ? "down" : "up", partition));
  const isNever = query.error instanceof RequestFailed && query.error.problem?.code === "never_materialized";
  return (
    <div className="stack">
      <div className="row wrap">
        <Segments label="Direction" value={direction} choices={DIRECTIONS} onChange={setDirection} />
        {detail.partitioned ? (
          <input
            key={partition}
            className="field"
            size={34}
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

/** Edges of one asset to another at one distance, made by one run: many partitions are a row of their own. */
interface Row {
  edges: Edge[];
  key: string;
}

/** More than these of one kind are a row that is opened. */
const ONE_BY_ONE = 8;

export function rowsOf(edges: readonly Edge[]): Row[] {
  const kinds = new Map<string, Edge[]>();
  for (const edge of edges) {
    const key = `${String(edge.depth)} ${edge.upstream_asset_key} ${edge.asset_key} ${edge.run_id}`;
    const known = kinds.get(key);
    if (known === undefined) kinds.set(key, [edge]);
    else known.push(edge);
  }
  return [...kinds].flatMap(([key, of]) => (of.length > ONE_BY_ONE ? [{ key, edges: of }] : of.map((edge, index) => ({ key: `${key} ${String(index)}`, edges: [edge] }))));
}

const text = (key: string | null | undefined) => (key == null ? "" : partitionText(key));

/** The partitions of one end: one by its name, several by the first and the last of them. */
function partitions(keys: readonly (string | null | undefined)[], all: number): string {
  const names = [...new Set(keys.map(text).filter((each) => each !== ""))].sort();
  const [first, last] = [names[0], names.at(-1)];
  if (first === undefined || last === undefined) return "";
  return first === last ? first : `${first} … ${last} (${count(Math.max(all, names.length))})`;
}

function Edges({ edges, isUp }: { edges: readonly Edge[]; isUp: boolean }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => rowsOf(edges.slice(0, MOST)), [edges]);
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label="What was read and made">
      <table className="table">
        <thead>
          <tr>
            <th>Steps</th>
            <th>{isUp ? "Was read" : "Was made"}</th>
            <th>{isUp ? "To make" : "From"}</th>
            <th>Run</th>
            <th>When</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Fragment key={row.key}>
              <EdgeRow
                edges={row.edges}
                isUp={isUp}
                toggle={
                  row.edges.length === 1
                    ? undefined
                    : () => {
                        setOpened((before) => new Set(before.has(row.key) ? [...before].filter((each) => each !== row.key) : [...before, row.key]));
                      }
                }
                isOpen={opened.has(row.key)}
              />
              {opened.has(row.key) ? row.edges.map((edge, index) => <EdgeRow key={index} edges={[edge]} isUp={isUp} />) : null}
            </Fragment>
          ))}
        </tbody>
      </table>
      {edges.length > MOST ? <p className="muted" style={{ padding: 12 }}>The nearest {MOST} of {count(edges.length)}.</p> : null}
    </div>
  );
}

function EdgeRow({ edges, isUp, toggle, isOpen = false }: { edges: readonly Edge[]; isUp: boolean; toggle?: (() => void) | undefined; isOpen?: boolean }) {
  const edge = edges[0];
  if (edge === undefined) return null;
  const up = {
    key: edge.upstream_asset_key,
    partition: partitions(
      edges.flatMap((each) => [each.upstream_partition_key, each.upstream_last_partition_key]),
      edges.reduce((sum, each) => sum + each.upstream_count, 0),
    ),
  };
  const down = { key: edge.asset_key, partition: partitions(edges.map((each) => each.partition_key), 0) };
  const [first, second] = isUp ? [up, down] : [down, up];
  return (
    <tr>
      <td>{edge.depth}</td>
      <td className="mono">
        <Link href={`${assetHref(first.key)}?tab=lineage`}>{dotted(first.key)}</Link> <span className="muted">{first.partition}</span>
        {toggle === undefined ? null : (
          <>
            {" "}
            <button type="button" className="button small" aria-expanded={isOpen} onClick={toggle}>
              {isOpen ? "Close" : "Each"}
            </button>
          </>
        )}
      </td>
      <td className="mono">
        {dotted(second.key)} <span className="muted">{second.partition}</span>
      </td>
      <td className="mono">
        <Link href={runHref(edge.run_id)}>{shortRun(edge.run_id)}</Link>
      </td>
      <td className="nowrap">
        <Ago at={edge.materialized_at} />
      </td>
    </tr>
  );
}
