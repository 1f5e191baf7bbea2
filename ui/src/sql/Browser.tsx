// What a query can name: Servo's tables with their columns, and assets, a few that match.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { answer, api } from "../api/client";
import { meQuery, sqlTablesQuery } from "../api/queries";
import { useWhyNot } from "../parts/Act";
import { dotted, plural } from "../parts/format";
import { Shown } from "../parts/Panel";

const MOST_ASSETS = 20;

export function Browser({ onTable, onName }: { onTable: (name: string) => void; onName: (name: string) => void }) {
  const [text, setText] = useState("");
  const asked = useDeferredValue(text.trim());
  const me = useQuery(meQuery);
  const why = useWhyNot("sql.run");
  // Whoever may not ask is not shown as somebody who tried.
  const tables = useQuery({ ...sqlTablesQuery, enabled: me.data !== undefined && why === undefined });
  const assets = useQuery({
    queryKey: ["assets", "sql", asked],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { limit: MOST_ASSETS, ...(asked === "" ? {} : { contains: asked.replace("/", ".") }) } }, signal })),
    retry: false,
  });
  return (
    <section className="panel browser" aria-label="Tables and assets">
      <input
        className="field"
        data-search
        aria-label="Filter tables and assets"
        placeholder="Filter tables and assets"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
        }}
      />
      <div className="scroll" tabIndex={0} role="group" aria-label="Names">
        <h2>Assets</h2>
        <Shown query={assets} rows={3}>
          {({ items, next_cursor }) => (
            <ul>
              {items.map((asset) => (
                <li key={asset.asset_key}>
                  <button
                    type="button"
                    className="plain mono ellipsis"
                    title={`Query ${dotted(asset.asset_key)}${asset.partitions.materialized === 0 ? ": never made" : ""}`}
                    onClick={() => {
                      onTable(dotted(asset.asset_key));
                    }}
                  >
                    {dotted(asset.asset_key)}
                  </button>
                  {asset.partitions.materialized === 0 ? <span className="muted">never made</span> : null}
                </li>
              ))}
              {items.length === 0 ? <li className="muted">none</li> : null}
              {next_cursor == null ? null : <li className="muted">and more: filter them</li>}
            </ul>
          )}
        </Shown>
        <h2>Tables of Servo</h2>
        {why === undefined ? null : <p className="muted">{why}.</p>}
        {why !== undefined ? null : <Shown query={tables} rows={8}>
          {({ items }) => (
            <ul>
              {items
                .filter((table) => table.name.includes(asked.toLowerCase()))
                .map((table) => (
                  <li key={table.name}>
                    <details>
                      <summary className="mono" title={`${plural(table.columns.length, "column")}. ${table.about}`}>
                        {table.name}
                      </summary>
                      <p className="muted">{table.about}</p>
                      <button
                        type="button"
                        className="button small"
                        onClick={() => {
                          onTable(table.name);
                        }}
                      >
                        Query it
                      </button>
                      <ul>
                        {table.columns.map((column) => (
                          <li key={column}>
                            <button
                              type="button"
                              className="plain mono"
                              title={`Insert ${column}`}
                              onClick={() => {
                                onName(column);
                              }}
                            >
                              {column}
                            </button>
                          </li>
                        ))}
                      </ul>
                    </details>
                  </li>
                ))}
            </ul>
          )}
        </Shown>}
      </div>
    </section>
  );
}
