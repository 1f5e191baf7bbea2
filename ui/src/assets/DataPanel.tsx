// The newest materialization of the asset or of one partition, with its first rows, columns and metadata.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { RequestFailed, type Schemas } from "../api/client";
import { materializationQuery } from "../api/queries";
import { bytes, count, dotted, plural, runHref, shortRun } from "../parts/format";
import { DataTable, Metadata } from "../parts/Metadata";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Ago } from "../parts/Time";

type Detail = Schemas["MaterializationDetail"];

export interface DataColumn {
  name: string;
  type: string | undefined;
  nulls: number | undefined;
}

/** Columns of the data: those of the schema, then what else the first rows have. */
export function columnsOf(of: Pick<Detail, "schema" | "nulls" | "preview">): DataColumn[] {
  const names = new Set([...Object.keys(of.schema ?? {}), ...(of.preview ?? []).flatMap((row) => Object.keys(row)), ...Object.keys(of.nulls ?? {})]);
  return [...names].map((name) => ({ name, type: of.schema?.[name], nulls: of.nulls?.[name] }));
}

export function nullsText(column: DataColumn, rows: number | null | undefined): string {
  if (column.nulls === undefined) return "";
  if (column.nulls === 0) return "no nulls";
  if (rows == null || rows === 0) return plural(column.nulls, "null");
  const share = (column.nulls / rows) * 100;
  return `${plural(column.nulls, "null")}, ${share < 1 ? "<1" : String(Math.round(share))} %`;
}

export function DataPanel({ asset, detail }: { asset: string; detail: Schemas["AssetDetail"] }) {
  const [chosen, setChosen] = useParam("partition");
  const partition = detail.partitioned ? (chosen !== "" ? chosen : (detail.latest?.partition ?? "")) : "";
  const query = useQuery(materializationQuery(asset, partition, !detail.partitioned || partition !== ""));
  const choose = detail.partitioned ? <ChoosePartition key={partition} value={partition} onChange={setChosen} /> : null;
  const isMissing = query.error instanceof RequestFailed && query.error.status === 404;
  const isNever = detail.partitioned && partition === "";
  return (
    <div className="stack">
      {choose}
      {isNever || isMissing ? (
        <Panel label="Data">
          <Empty title={partition === "" ? "Never made" : `${partition} was never made`}>
            <p>The first rows, the columns and what the function attached are shown here once it is.</p>
            <pre>{`servo materialize ${dotted(asset)}${partition === "" ? "" : ` --partition ${partition}`}`}</pre>
          </Empty>
        </Panel>
      ) : query.data !== undefined ? (
        <Shape asset={asset} of={query.data} />
      ) : query.error !== null ? (
        <ProblemBox error={query.error} again={() => void query.refetch()} />
      ) : (
        <Skeleton rows={8} />
      )}
    </div>
  );
}

function ChoosePartition({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  return (
    <form
      className="row wrap"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(text.trim());
      }}
    >
      <label className="row">
        Partition
        <input
          className="field mono"
          data-search=""
          value={text}
          spellCheck={false}
          onChange={(event) => {
            setText(event.target.value);
          }}
        />
      </label>
      <button type="submit" className="button small">
        Show
      </button>
      <span className="muted">the newest that was made, unless another is named</span>
    </form>
  );
}

function Shape({ asset, of }: { asset: string; of: Detail }) {
  const columns = columnsOf(of);
  const preview = of.preview ?? [];
  const metadata = of.metadata ?? {};
  return (
    <>
      <div className="figures">
        <div className="figure">
          <b>
            <Ago at={of.materialized_at} />
          </b>
          <span>made{of.partition == null ? "" : `, ${of.partition}`}</span>
        </div>
        <div className="figure">
          <b>{of.row_count == null ? "–" : count(of.row_count)}</b>
          <span>rows</span>
        </div>
        <div className="figure">
          <b>{of.byte_size == null ? "–" : bytes(of.byte_size)}</b>
          <span>{of.format == null ? "size" : `size, ${of.format.toLowerCase()}`}</span>
        </div>
        <div className="figure">
          <b>{of.run_id == null ? "–" : <Link href={runHref(of.run_id)} className="mono">{shortRun(of.run_id)}</Link>}</b>
          <span>{of.run_id == null ? "marked by hand" : "run"}</span>
        </div>
      </div>
      {of.uri == null ? null : <p className="mono muted breaks">{of.uri}</p>}
      {Object.keys(metadata).length === 0 ? null : (
        <Panel title="Metadata" label="Metadata">
          <div className="body">
            <Metadata of={metadata} materialization={{ asset, materialization: of.materialization_id, partition: of.partition }} />
          </div>
        </Panel>
      )}
      <Panel title="Data" label="Data" aside={<span className="muted">{columns.length === 0 ? "" : preview.length === 0 ? "" : of.row_count != null && of.row_count > preview.length ? `the first ${count(preview.length)} of ${plural(of.row_count, "row")}; ` : `${plural(preview.length, "row")}; `}{columns.length === 0 ? "" : plural(columns.length, "column")}</span>}>
        {columns.length === 0 ? (
          <Empty title="No preview was recorded">
            <p>Tables have one: a dataframe, or a list of dicts.</p>
          </Empty>
        ) : preview.length === 0 ? (
          <DataTable label="Columns" columns={["column", "type", "nulls"]} rows={columns.map((column) => [column.name, column.type ?? "", nullsText(column, of.row_count)])} />
        ) : (
          <DataTable label="First rows" columns={columns.map((column) => column.name)} notes={columns.map((column) => [column.type, nullsText(column, of.row_count)].filter(Boolean).join(", "))} rows={preview.map((row) => columns.map((column) => row[column.name]))} />
        )}
      </Panel>
    </>
  );
}
