// Metadata as what it is: Markdown, tables, links, pictures, and JSON for the rest.
import { useState } from "react";
import { assetPath } from "../api/client";
import { route } from "../api/workspace";
import { Away, Markdown } from "./Markdown";
import { count, plural } from "./format";
import { cellText, shownOf } from "./metadataKinds";

/** Rows of data that anybody may have made: texts, numbers to the right, what is missing marked. */
export function DataTable({ label, columns, rows, notes }: { label: string; columns: readonly string[]; rows: readonly (readonly unknown[])[]; notes?: readonly (string | undefined)[] }) {
  const isNumber = columns.map((_, index) => rows.some((row) => typeof row[index] === "number") && rows.every((row) => row[index] == null || typeof row[index] === "number"));
  return (
    <div className="scroll data-table" tabIndex={0} role="group" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} className={isNumber[index] === true ? "right" : undefined}>
                <span className="mono">{column}</span>
                {notes === undefined ? null : <span className="note">{notes[index] ?? ""}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, line) => (
            <tr key={line}>
              {columns.map((_, index) => (
                <td key={index} className={isNumber[index] === true ? "right" : undefined} title={cellText(row[index]).length > 60 ? cellText(row[index]) : undefined}>
                  {row[index] == null ? <span className="muted">null</span> : cellText(row[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The materialization that metadata is of: its pictures are files beside its data. */
export interface Of {
  asset: string;
  materialization: string;
  partition: string | null | undefined;
}

export function pictureHref({ asset, materialization, partition }: Of, file: string): string {
  const { namespace, name } = assetPath(asset);
  const path = ["assets", namespace, name, "materializations", materialization, "files", file].map(encodeURIComponent).join("/");
  return route(`/api/v1/${path}`) + (partition == null ? "" : `?${new URLSearchParams({ partition }).toString()}`);
}

/** A picture, or what is known of one that cannot be shown. */
function Picture({ source, alt, about }: { source: string | undefined; alt: string; about: string }) {
  const [isBroken, setIsBroken] = useState(false);
  if (source === undefined || isBroken)
    return (
      <span className="muted">
        {about}
        {isBroken ? "; it cannot be shown" : ""}
      </span>
    );
  const picture = (
    <img
      src={source}
      alt={alt}
      className="picture"
      onError={() => {
        setIsBroken(true);
      }}
    />
  );
  // Browsers open no address that is the picture itself.
  if (source.startsWith("data:")) return picture;
  return (
    <a href={source} target="_blank" rel="noreferrer" title={`Open ${about}`} className="picture-box">
      {picture}
    </a>
  );
}

export function Value({ name, value, materialization }: { name: string; value: unknown; materialization?: Of | undefined }) {
  const shown = shownOf(value);
  switch (shown.kind) {
    case "md":
      return <Markdown text={shown.text} />;
    case "url":
      return shown.href === undefined ? (
        <span className="mono">
          {shown.text}
          {shown.text === shown.url ? "" : ` (${shown.url})`}
        </span>
      ) : (
        <Away href={shown.href}>{shown.text}</Away>
      );
    case "table":
      return shown.columns.length === 0 ? (
        <span className="muted">no columns</span>
      ) : (
        <>
          <DataTable label={name} columns={shown.columns} rows={shown.rows} />
          {shown.total > shown.rows.length ? <p className="muted">the first {count(shown.rows.length)} of {plural(shown.total, "row")}</p> : null}
        </>
      );
    case "image": {
      const source = shown.source ?? (materialization === undefined || shown.name === "" ? undefined : pictureHref(materialization, shown.name));
      return <Picture key={source} source={source} alt={name} about={[shown.name === "" ? "a picture" : shown.name, shown.type, shown.size].filter(Boolean).join(", ")} />;
    }
    case "plain":
      return <span className="mono">{shown.text}</span>;
    case "json":
      return shown.isLong ? (
        <details>
          <summary className="muted">JSON, {plural(shown.text.split("\n").length, "line")}</summary>
          <pre className="json" tabIndex={0}>{shown.text}</pre>
        </details>
      ) : (
        <pre className="json">{shown.text}</pre>
      );
  }
}

/** All that was attached, by name; pictures are found if it is known to which materialization. */
export function Metadata({ of, materialization }: { of: Record<string, unknown>; materialization?: Of | undefined }) {
  const entries = Object.entries(of);
  if (entries.length === 0) return null;
  return (
    <dl className="facts metadata">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt className="mono">{name}</dt>
          <dd>
            <Value name={name} value={value} materialization={materialization} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
