// Assets as a graph or a list. What the selection box selects is what is shown, and what "Materialize" takes.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useState } from "react";
import { Link } from "wouter";
import { answer, api } from "../api/client";
import { materializeStore } from "../materialize/open";
import { Act } from "../parts/Act";
import { dotted } from "../parts/format";
import { useParam } from "../parts/params";
import { useDebounced } from "../parts/useDebounced";
import { AssetList } from "./AssetList";
import { GraphView } from "./GraphView";

export default function AssetsPage() {
  const [view] = useParam("view", "graph");
  const [selection, setSelection] = useParam("selection");
  const [text, setText] = useState(selection);
  const rested = useDebounced(text.trim());
  useEffect(() => {
    setSelection(rested);
  }, [rested, setSelection]);
  return (
    <div className="page full">
      <div className="toolbar">
        <h1>Assets</h1>
        <div className="segments" role="group" aria-label="View">
          {(["graph", "list"] as const).map((each) => (
            <Link key={each} href={`/assets?${new URLSearchParams({ ...(each === "graph" ? {} : { view: each }), ...(selection === "" ? {} : { selection }) }).toString()}`} aria-current={view === each ? "page" : undefined}>
              {each === "graph" ? "Graph" : "List"}
            </Link>
          ))}
        </div>
        <SelectionBox text={text} onChange={setText} />
        <span className="grow" />
        <Act
          needs="runs.trigger"
          className="button primary"
          onClick={() => {
            materializeStore.open({ selection: selection === "" ? "*" : selection });
          }}
        >
          {selection === "" ? "Materialize all…" : "Materialize selected…"}
        </Act>
      </div>
      {view === "graph" ? <GraphView selection={selection} /> : <AssetList selection={selection} />}
    </div>
  );
}

function SelectionBox({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  // Completes the last word, from a few assets that match it.
  const word = useDeferredValue(/[\w.*-]+$/.exec(text)?.[0] ?? "");
  const { data } = useQuery({
    queryKey: ["assets", "completion", word],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { limit: 12, contains: word } }, signal })),
    enabled: /^[\w.-]+$/.test(word),
    retry: false,
  });
  const before = text.slice(0, text.length - word.length);
  return (
    <>
      <input
        className="field mono"
        data-search=""
        style={{ flex: "0 1 420px" }}
        placeholder="selection: +sales.weekly, tag:daily, raw.*"
        aria-label="Selection of assets"
        list="selection-words"
        value={text}
        spellCheck={false}
        onChange={(event) => {
          onChange(event.target.value);
        }}
      />
      <datalist id="selection-words">
        {data?.items.map((asset) => (
          <option key={asset.asset_key} value={before + dotted(asset.asset_key)} />
        ))}
      </datalist>
    </>
  );
}
