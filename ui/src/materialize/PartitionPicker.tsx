// Which partitions: the newest, those never made, or these.
import type { Schemas } from "../api/client";
import { useQuery } from "@tanstack/react-query";
import { assetQuery } from "../api/queries";
import { count, dotted, plural } from "../parts/format";

export interface Choice {
  kind: "none" | "latest" | "missing" | "these";
  text: string;
}

export function PartitionPicker({ asset, choice, onChange }: { asset: Schemas["Asset"]; choice: Choice; onChange: (choice: Choice) => void }) {
  const { data } = useQuery(assetQuery(asset.asset_key));
  const never = asset.partitions.total - asset.partitions.materialized - asset.partitions.last_attempt_failed;
  const [first, last] = [data?.first_partition ?? undefined, data?.last_partition ?? undefined];
  const options: [Choice["kind"], string, string][] = [
    ["latest", "The newest", last === undefined ? "" : last],
    ["missing", "Those never made", `${count(never)} of ${dotted(asset.asset_key)}`],
    ["these", "These", ""],
  ];
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0, display: "grid", gap: 8 }}>
      <legend style={{ fontSize: 13, padding: 0 }}>Partitions ({plural(asset.partitions.total, "exists", "exist")})</legend>
      <div className="row wrap" style={{ gap: "4px 18px", fontSize: 13 }}>
        {options.map(([kind, name, more]) => (
          <label key={kind} className="row">
            <input
              type="radio"
              name="partitions"
              checked={choice.kind === kind}
              onChange={() => {
                onChange({ kind, text: choice.text === "" && kind === "these" && first !== undefined && last !== undefined ? `${first}..${last}` : choice.text });
              }}
            />
            {name} <span className="muted">{more}</span>
          </label>
        ))}
      </div>
      {choice.kind === "these" ? (
        <textarea
          className="field mono"
          rows={3}
          aria-label="Keys and ranges of partitions"
          value={choice.text}
          spellCheck={false}
          placeholder={`${first ?? "2013-01-01"}..${last ?? "2013-01-31"}`}
          onChange={(event) => {
            onChange({ kind: "these", text: event.target.value });
          }}
        />
      ) : null}
    </fieldset>
  );
}
