// What differs between two deployments: definitions, and in them fields.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { diffQuery } from "../api/queries";
import { assetHref, count, dotted, plural } from "../parts/format";
import { ProblemBox, Skeleton } from "../parts/Panel";

type Item = Schemas["DefinitionDiff"];
type Field = Schemas["FieldChange"];

const SIGNS: Record<string, [string, string, string]> = {
  ADDED: ["+", "added", "var(--succeeded)"],
  REMOVED: ["−", "removed", "var(--failed)"],
  CHANGED: ["~", "changed", "var(--running)"],
  MOVED: ["→", "moved within the code", "var(--muted)"],
};

export function countsText(counts: Schemas["DiffCounts"]): string {
  const parts = (["added", "changed", "removed", "moved"] as const).filter((name) => counts[name] > 0).map((name) => `${count(counts[name])} ${name}`);
  return parts.length === 0 ? "nothing differs" : parts.join(", ");
}

export function Diff({ from, to }: { from: number; to: number }) {
  const query = useInfiniteQuery(diffQuery(from, to));
  const [showsMoved, setShowsMoved] = useState(false);
  if (query.error !== null) return <ProblemBox error={query.error} again={() => void query.refetch()} />;
  if (query.data === undefined) return <Skeleton rows={4} />;
  const items = query.data.pages.flatMap((page) => page.items);
  const counts = query.data.pages[0]?.counts ?? { added: 0, changed: 0, moved: 0, removed: 0 };
  const shown = showsMoved ? items : items.filter((item) => item.change !== "MOVED");
  return (
    <div className="stack" style={{ gap: 8 }} role="group" aria-label={`Differences between deployment ${String(from)} and ${String(to)}`}>
      <p className="muted" style={{ fontSize: 13 }}>
        From #{from} to #{to}: {countsText(counts)}.
      </p>
      {shown.length === 0 ? null : (
        <ul className="diff">
          {shown.map((item) => (
            <Changed key={`${item.kind} ${item.name}`} item={item} />
          ))}
        </ul>
      )}
      <div className="row wrap">
        {query.hasNextPage ? (
          <button type="button" className="button small" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more
          </button>
        ) : null}
        {counts.moved > 0 ? (
          <button
            type="button"
            className="button small quiet"
            onClick={() => {
              setShowsMoved(!showsMoved);
            }}
          >
            {showsMoved ? "Hide" : "Show"} {plural(counts.moved, "definition")} that only moved within the code
          </button>
        ) : null}
      </div>
    </div>
  );
}

function Changed({ item }: { item: Item }) {
  const [sign, word, color] = SIGNS[item.change] ?? ["~", item.change.toLowerCase(), "var(--text)"];
  const name = item.kind === "asset" ? dotted(item.name) : item.name;
  return (
    <li>
      <div className="row wrap">
        <span className="mono" style={{ color, fontWeight: 600 }} aria-hidden="true">
          {sign}
        </span>
        <span className="mono">{item.kind === "asset" && item.change !== "REMOVED" ? <Link href={`${assetHref(item.name)}?tab=definition`}>{name}</Link> : name}</span>
        <span className="chip">{item.kind}</span>
        <span style={{ color }}>{word}</span>
      </div>
      <FieldChanges fields={item.fields ?? []} more={item.more_fields ?? 0} />
    </li>
  );
}

export function FieldChanges({ fields, more }: { fields: readonly Field[]; more: number }) {
  if (fields.length === 0) return null;
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label="Fields that differ">
      <table className="table fields">
        <tbody>
          {fields.map((field) => (
            <tr key={field.path}>
              <th scope="row" className="mono">
                {field.path}
              </th>
              <td>
                <Value text={field.before} className="before" />
              </td>
              <td>
                <Value text={field.after} className="after" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 ? <p className="muted">and {plural(more, "field")} more</p> : null}
    </div>
  );
}

function Value({ text, className }: { text: string | null | undefined; className: string }) {
  if (text == null) return <span className="muted">none</span>;
  return <code className={className}>{readable(text)}</code>;
}

/** Texts without the quotes of JSON, versions of code cut to what people compare. */
export function readable(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "string") return /^(sha256:)?[0-9a-f]{40,}$/.test(value) ? `${value.slice(0, 19)}…` : value;
    if (typeof value !== "object" || value === null) return text;
    if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ");
    return text.length <= 60 ? text : JSON.stringify(value, undefined, 1);
  } catch {
    return text;
  }
}
