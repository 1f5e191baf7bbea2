// What, which partitions, with which configuration; the plan before anything happens; then one button.
import { keepPreviousData, useMutation, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { answer, api, once, RequestFailed, type Schemas } from "../api/client";
import { assetQuery } from "../api/queries";
import { useWhyNot } from "../parts/Act";
import { Dialog } from "../parts/Dialog";
import { count, dotted, plural, runHref } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { toast } from "../parts/toasts";
import { useDebounced } from "../parts/useDebounced";
import { ConfigForm, type ConfigField } from "./ConfigForm";
import { materializeStore, type MaterializeRequest } from "./open";
import { PartitionPicker, type Choice } from "./PartitionPicker";

type Plan = Schemas["Plan"];
/** Assets whose configuration is offered. */
const MOST_CONFIGURED = 10;

export default function MaterializeDialog({ request }: { request: MaterializeRequest }) {
  const [place, navigate] = useLocation();
  const [selection, setSelection] = useState(request.selection);
  const [choice, setChoice] = useState<Choice>(() => {
    const ranges = [...(request.ranges ?? []), ...(request.keys ?? [])];
    return ranges.length > 0 ? { kind: "these", text: ranges.join("\n") } : { kind: "none", text: "" };
  });
  const [asBackfill, setAsBackfill] = useState(request.asBackfill === true);
  const [config, setConfig] = useState<Record<string, unknown>>({});
  const asked = useDebounced(selection.trim());
  // Whether there are partitions is known from the selected assets themselves.
  const assets = useQuery({
    queryKey: ["assets", "materialize", asked],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { selection: asked, limit: 25 } }, signal })),
    enabled: asked !== "",
    retry: false,
    placeholderData: keepPreviousData,
  });
  const partitioned = assets.data?.items.find((asset) => asset.partitioned && !asset.external);
  const effective: Choice = partitioned === undefined ? { kind: "none", text: "" } : choice.kind === "none" ? { kind: "latest", text: "" } : choice;
  const body = useMemo(() => bodyOf(asked, effective.kind, effective.text, config), [asked, effective.kind, effective.text, config]);
  const rested = useDebounced(body);
  const plan = useQuery({
    queryKey: ["plan", rested],
    queryFn: ({ signal }) => answer(api.POST("/api/v1/plan", { body: rested, signal })),
    enabled: !(asBackfill && partitioned !== undefined) && asked !== "" && assets.isSuccess && !assets.isPlaceholderData && rested === body,
    retry: false,
    staleTime: 0,
  });
  const preview = useQuery({
    queryKey: ["backfill preview", rested],
    queryFn: ({ signal }) => answer(api.POST("/api/v1/orchestration/backfills/preview", { body: rested, signal })),
    enabled: asBackfill && partitioned !== undefined && asked !== "" && assets.isSuccess && !assets.isPlaceholderData && rested === body,
    retry: false,
    staleTime: 0,
  });
  const planned = useMemo(() => byAsset(plan.data), [plan.data]);
  const details = useQueries({ queries: planned.slice(0, MOST_CONFIGURED).map(([key]) => assetQuery(key)) });
  const fields: ConfigField[] = details.flatMap(({ data }) => ((data?.definition as { config?: { fields?: Omit<ConfigField, "asset">[] } } | undefined)?.config?.fields ?? []).map((field) => ({ ...field, asset: dotted(data?.asset_key ?? "") })));
  const trigger = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/runs", { params: { header: once() }, body: { ...body, source: "manual" } })),
    onSuccess: (accepted) => {
      materializeStore.close();
      toast(`Asked for a run of ${plural(accepted.tasks, "task")}`, { href: runHref(accepted.run_id), link: "Watch" });
      if (!place.startsWith("/assets")) navigate(runHref(accepted.run_id));
    },
  });
  const create = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/orchestration/backfills", { params: { header: once() }, body })),
    onSuccess: (made) => {
      materializeStore.close();
      navigate(`/backfills/${made.backfill_id}`);
    },
  });
  const whyNot = useWhyNot("runs.trigger");
  const isBackfill = asBackfill && partitioned !== undefined;
  const close = () => {
    materializeStore.close();
  };
  const tasks = isBackfill ? (preview.data?.total_partitions ?? 0) : (plan.data?.tasks.length ?? 0);
  const error = assets.error ?? (isBackfill ? preview.error : plan.error);
  // An unfinished selection is no mistake yet.
  const isUnfinished = asked === "";
  return (
    <Dialog title="Materialize" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (whyNot !== undefined) return;
          if (tasks > 0 && isBackfill && !create.isPending) create.mutate();
          else if (tasks > 0 && !isBackfill && !trigger.isPending) trigger.mutate();
        }}
      >
        <div className="content">
          <label className="line">
            Assets
            <input
              className="field mono"
              value={selection}
              spellCheck={false}
              placeholder="raw.flights, +analytics.weekly, tag:daily, *"
              onChange={(event) => {
                setSelection(event.target.value);
              }}
            />
          </label>
          {partitioned === undefined ? null : <PartitionPicker asset={partitioned} choice={effective} onChange={setChoice} />}
          {partitioned === undefined ? null : (
            <label className="row" style={{ fontSize: 13 }}>
              <input
                type="checkbox"
                checked={asBackfill}
                onChange={(event) => {
                  setAsBackfill(event.target.checked);
                }}
              />
              As a backfill: in chunks that can be paused, for many partitions
            </label>
          )}
          {fields.length === 0 ? null : <ConfigForm fields={fields} onChange={setConfig} />}
          <div className="stack" style={{ gap: 8 }}>
            <h2>Plan</h2>
            {isUnfinished ? <p className="muted">Name the assets to see what would run.</p> : null}
            {!isUnfinished && error !== null ? <ProblemBox error={error} /> : null}
            {isBackfill && preview.data !== undefined && error === null ? (
              <p>
                {plural(preview.data.total_partitions, "partition")} in {plural(preview.data.total_chunks, "chunk")}, each a run; {preview.data.max_concurrent_runs} at once. The first has {plural(preview.data.first_run_tasks, "task")}.
              </p>
            ) : null}
            {!isUnfinished && error === null && (isBackfill ? preview.data : plan.data) === undefined ? <p className="muted">Planning…</p> : null}
            {!isBackfill && plan.data !== undefined && error === null && !isUnfinished ? <PlanView plan={plan.data} planned={planned} /> : null}
            {trigger.error instanceof RequestFailed ? <ProblemBox error={trigger.error} /> : null}
            {create.error instanceof RequestFailed ? <ProblemBox error={create.error} /> : null}
          </div>
        </div>
        <footer>
          <span className="muted grow" style={{ fontSize: 13 }}>
            {isBackfill || plan.data === undefined || isUnfinished ? "" : `${plural(tasks, "task")} in ${plural(plan.data.stages, "stage")}`}
          </span>
          <button type="button" className="button" onClick={close}>
            Close
          </button>
          <button type="submit" className="button primary" title={whyNot} disabled={whyNot !== undefined || tasks === 0 || error !== null || isUnfinished || trigger.isPending || create.isPending || plan.isFetching || preview.isFetching || rested !== body || asked !== selection.trim()}>
            {trigger.isPending || create.isPending ? "Asking…" : isBackfill ? `Backfill ${plural(tasks, "partition")}` : tasks === 0 || isUnfinished ? "Materialize" : `Materialize ${label(planned, tasks)}`}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function label(planned: readonly [string, number][], tasks: number): string {
  const first = planned[0];
  if (planned.length === 1 && first !== undefined) return first[1] === 1 ? dotted(first[0]) : plural(first[1], "partition");
  return planned.length === tasks ? plural(planned.length, "asset") : plural(tasks, "task");
}

export function bodyOf(selection: string, kind: Choice["kind"], text: string, config: Record<string, unknown>): Schemas["RunBody"] {
  const words = text.split(/[\n;]+/).map((word) => word.trim()).filter(Boolean);
  const partitions: Schemas["PartitionsBody"] =
    kind === "latest" ? { latest: true } : kind === "missing" ? { missing: true } : kind === "these" ? { keys: words.filter((word) => !word.includes("..")), ranges: words.filter((word) => word.includes("..")) } : {};
  return { selection, ...(Object.keys(partitions).length === 0 ? {} : { partitions }), ...(Object.keys(config).length === 0 ? {} : { config: config as never }) };
}

/** Planned assets with the number of their tasks, those of the first stage first. */
function byAsset(plan: Plan | undefined): [string, number][] {
  const found = new Map<string, number>();
  for (const task of plan?.tasks ?? []) {
    const key = task.asset_keys[0] ?? "";
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return [...found];
}

function PlanView({ plan, planned }: { plan: Plan; planned: readonly [string, number][] }) {
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="scroll" style={{ maxHeight: 180 }} tabIndex={0} role="group" aria-label="Planned tasks">
        <table className="table">
          <tbody>
            {planned.slice(0, 50).map(([key, tasks]) => (
              <tr key={key}>
                <td className="mono">{dotted(key)}</td>
                <td className="right">{plural(tasks, "task")}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {planned.length > 50 ? <p className="muted">and {count(planned.length - 50)} more assets</p> : null}
      </div>
      {plan.warnings.slice(0, 5).map((warning) => (
        <p key={warning} className="notice">
          {warning}
        </p>
      ))}
      {plan.warnings.length > 5 ? <p className="muted">and {plural(plan.warnings.length - 5, "warning")} more</p> : null}
    </div>
  );
}
