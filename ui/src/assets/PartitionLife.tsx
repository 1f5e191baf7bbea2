// Partitions are wiped or marked: what would go is shown before it does, and the last change can be undone.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, assetPath, once } from "../api/client";
import { ActionDialog, ReasonField } from "../parts/ActionDialog";
import { Check } from "../parts/fields";
import { count, dotted, plural } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { toast, toastError } from "../parts/toasts";

export interface Chosen {
  keys: string[];
  ranges: string[];
  total: number;
}

function useChanged(asset: string) {
  const queries = useQueryClient();
  return () => Promise.all(["partitions", "asset", "assets", "graph", "history"].map((family) => queries.invalidateQueries({ queryKey: [family] }))).then(() => asset);
}

export function WipeDialog({ asset, chosen, onClose }: { asset: string; chosen: Chosen; onClose: () => void }) {
  const [keepsData, setKeepsData] = useState(true);
  const [reason, setReason] = useState("");
  const changed = useChanged(asset);
  const partitions = { keys: chosen.keys, ranges: chosen.ranges };
  const preview = useQuery({
    queryKey: ["wipe", asset, partitions],
    queryFn: ({ signal }) => answer(api.POST("/api/v1/assets/{namespace}/{name}/partitions/wipe/preview", { params: { path: assetPath(asset) }, body: partitions, signal })),
    staleTime: 0,
    retry: false,
  });
  const wipe = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/assets/{namespace}/{name}/partitions/wipe", { params: { path: assetPath(asset), header: once() }, body: { partitions, keep_data: keepsData, reason } })),
    onSuccess: async (done) => {
      await changed();
      toast(`${plural(done.count, "partition")} of ${dotted(asset)} wiped`);
      onClose();
    },
  });
  const found = preview.data;
  return (
    <ActionDialog
      title={`Wipe partitions of ${dotted(asset)}`}
      onClose={onClose}
      action={keepsData ? `Wipe ${plural(found?.count ?? 0, "partition")}` : `Wipe ${plural(found?.count ?? 0, "partition")} with data`}
      onAct={() => {
        wipe.mutate();
      }}
      change={wipe}
      disabled={found === undefined || found.count === 0}
      isDangerous
    >
      {preview.error === null ? null : <ProblemBox error={preview.error} />}
      {found === undefined ? (
        preview.error === null ? <p className="muted">Looking…</p> : null
      ) : (
        <p>
          {plural(found.count, "partition")} {found.count === 1 ? "counts" : "count"} as never made afterwards, {count(found.with_data)} of them with data{found.first == null ? "" : `: ${found.first} … ${found.last ?? found.first}`}.
        </p>
      )}
      <Check checked={keepsData} onChange={setKeepsData}>
        Keep the data where it is: then it can be undone
      </Check>
      {keepsData ? null : <p className="notice">The data is removed for good.</p>}
      <ReasonField value={reason} onChange={setReason} />
    </ActionDialog>
  );
}

export function MarkDialog({ asset, chosen, onClose }: { asset: string; chosen: Chosen; onClose: () => void }) {
  const [as, setAs] = useState<"materialized" | "failed">("materialized");
  const [reason, setReason] = useState("");
  const changed = useChanged(asset);
  const mark = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/assets/{namespace}/{name}/partitions/mark", { params: { path: assetPath(asset), header: once() }, body: { as, reason, partitions: { keys: chosen.keys, ranges: chosen.ranges } } })),
    onSuccess: async (done) => {
      await changed();
      toast(`${plural(done.count, "partition")} of ${dotted(asset)} marked ${as}`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title={`Mark partitions of ${dotted(asset)}`}
      onClose={onClose}
      action={`Mark ${plural(chosen.total, "partition")} ${as}`}
      onAct={() => {
        mark.mutate();
      }}
      change={mark}
    >
      <p>{plural(chosen.total, "partition")} get another status; nothing is made or removed by it, and it can be undone.</p>
      <fieldset style={{ border: 0, padding: 0, margin: 0, display: "grid", gap: 6, fontSize: 13 }}>
        <legend className="sr">As what</legend>
        {(
          [
            ["materialized", "Materialized: the data is there, whoever made it"],
            ["failed", "Failed: it is to be made again"],
          ] as const
        ).map(([value, text]) => (
          <label key={value} className="row">
            <input
              type="radio"
              name="as"
              checked={as === value}
              onChange={() => {
                setAs(value);
              }}
            />
            {text}
          </label>
        ))}
      </fieldset>
      <ReasonField value={reason} onChange={setReason} />
    </ActionDialog>
  );
}

/** Gives partitions back what they were before the last wipe or mark. */
export function useUndo(asset: string) {
  const changed = useChanged(asset);
  return useMutation({
    mutationFn: () => answer(api.POST("/api/v1/assets/{namespace}/{name}/partitions/undo", { params: { path: assetPath(asset), header: once() }, body: {} })),
    onSuccess: async (done) => {
      await changed();
      toast(`${plural(done.count, "partition")} of ${dotted(asset)} are what they were`);
    },
    onError: toastError,
  });
}
