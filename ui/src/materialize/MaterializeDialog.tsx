// What, which partitions, with which configuration; the plan before anything happens; then one button.
import { keepPreviousData, useMutation, useQueries, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { answer, api, once, RequestFailed, type Schemas } from "../api/client";
import { assetQuery } from "../api/queries";
import { useWhyNot } from "../parts/Act";
import { Dialog } from "../parts/Dialog";
import { count, dotted, duration, money, plural, runHref } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { toast } from "../parts/toasts";
import { useDebounced } from "../parts/useDebounced";
import { backfillBodyOf, bodyOf, choiceOf, labelsText, NO_OPTIONS, type Choice, type Options } from "./choice";
import { ConfigForm, type ConfigField } from "./ConfigForm";
import { materializeStore, type MaterializeRequest } from "./open";
import { OptionsForm, optionsProblem } from "./OptionsForm";
import { PartitionPicker } from "./PartitionPicker";
import { byAsset, PlanView } from "./PlanView";

/** Assets whose configuration is offered. */
const MOST_CONFIGURED = 10;
const MOST_TARGETS = 8;
/** Tasks of a run from which on a backfill is offered. */
const MANY_TASKS = 500;

export default function MaterializeDialog({ request }: { request: MaterializeRequest }) {
  const [place, navigate] = useLocation();
  const [selection, setSelection] = useState(request.selection);
  const [choice, setChoice] = useState<Choice>(() => choiceOf(request.partitions ?? { keys: [...(request.keys ?? [])], ranges: [...(request.ranges ?? [])] }));
  const [asBackfill, setAsBackfill] = useState(request.asBackfill === true);
  const given = useMemo(() => request.config ?? {}, [request.config]);
  const [options, setOptions] = useState<Options>({ ...NO_OPTIONS, config: given, labels: labelsText(request.labels), priority: (request.priority ?? 0) === 0 ? "" : String(request.priority) });
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
  const isPartitioned = partitioned !== undefined;
  const isBackfill = asBackfill && isPartitioned;
  const effective = useMemo((): Choice => (!isPartitioned ? { kind: "none", text: "" } : choice.kind === "none" ? { kind: "latest", text: "" } : choice), [isPartitioned, choice]);
  const body = useMemo(() => (isBackfill ? backfillBodyOf(asked, effective, options) : bodyOf(asked, effective, options)), [isBackfill, asked, effective, options]);
  const rested = useDebounced(body);
  const plan = useQuery({
    queryKey: ["plan", rested],
    queryFn: ({ signal }) => answer(api.POST("/api/v1/plan", { body: rested, signal })),
    enabled: !isBackfill && asked !== "" && assets.isSuccess && !assets.isPlaceholderData && rested === body,
    retry: false,
    staleTime: 0,
  });
  const preview = useQuery({
    queryKey: ["backfill preview", rested],
    queryFn: ({ signal }) => answer(api.POST("/api/v1/orchestration/backfills/preview", { body: rested, signal })),
    enabled: isBackfill && asked !== "" && assets.isSuccess && !assets.isPlaceholderData && rested === body,
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
          if (whyNot !== undefined || optionsProblem(options, isBackfill) !== undefined) return;
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
          {fields.length === 0 ? null : (
            <ConfigForm
              fields={fields}
              given={given}
              onChange={(config) => {
                setOptions((before) => ({ ...before, config }));
              }}
            />
          )}
          <OptionsForm options={options} isBackfill={isBackfill} onChange={setOptions} />
          <div className="stack" style={{ gap: 8 }}>
            <h2>Plan</h2>
            {isUnfinished ? <p className="muted">Name the assets to see what would run.</p> : null}
            {!isUnfinished && error !== null ? <ProblemBox error={error} /> : null}
            {isBackfill && preview.data !== undefined && error === null ? <BackfillView preview={preview.data} /> : null}
            {!isUnfinished && error === null && (isBackfill ? preview.data : plan.data) === undefined ? <p className="muted">Planning…</p> : null}
            {!isBackfill && plan.data !== undefined && error === null && !isUnfinished ? <PlanView plan={plan.data} /> : null}
            {!isBackfill && isPartitioned && tasks > MANY_TASKS && error === null && !isUnfinished ? (
              <p className="notice row wrap">
                <span className="grow">A backfill makes as many in chunks, which can be paused and tried again one by one.</span>
                <button
                  type="button"
                  className="button small"
                  onClick={() => {
                    setAsBackfill(true);
                  }}
                >
                  Make it a backfill
                </button>
              </p>
            ) : null}
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
          <button type="submit" className="button primary" title={whyNot} disabled={whyNot !== undefined || optionsProblem(options, isBackfill) !== undefined || tasks === 0 || error !== null || isUnfinished || trigger.isPending || create.isPending || plan.isFetching || preview.isFetching || rested !== body || asked !== selection.trim()}>
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

/** What a backfill would make, and about how long that takes. */
function BackfillView({ preview }: { preview: Schemas["BackfillPreview"] }) {
  const [first] = preview.first_chunk_partitions;
  const last = preview.first_chunk_partitions.at(-1);
  return (
    <>
      <p>
        {plural(preview.total_partitions, "partition")} in {plural(preview.total_chunks, "chunk")}, each a run; {preview.max_concurrent_runs} at once. The first has {plural(preview.first_run_tasks, "task")}
        {first === undefined ? "" : `, ${first === last || last === undefined ? first : `${first} … ${last}`}`}.
      </p>
      <p data-testid="estimate">{estimateText(preview)}</p>
      <dl className="facts">
        {preview.targets.slice(0, MOST_TARGETS).map((target) => (
          <div key={target.asset_key} className="contents">
            <dt className="mono">{dotted(target.asset_key)}</dt>
            <dd className="muted mono">
              {(target.partitions ?? []).slice(0, 3).join(", ")}
              {(target.partitions ?? []).length > 3 || (target.more ?? 0) > 0 ? ` and ${count(Math.max(0, (target.partitions ?? []).length - 3) + (target.more ?? 0))} more ranges` : ""}
            </dd>
          </div>
        ))}
        {preview.targets.length > MOST_TARGETS ? <dd className="muted">and {count(preview.targets.length - MOST_TARGETS)} more assets</dd> : null}
      </dl>
    </>
  );
}

/** How long it takes and what it costs, by what tasks took before. */
export function estimateText(preview: { estimated_seconds?: number | null; estimated_work_seconds?: number | null; estimated_cost_micro_usd?: number | null }): string {
  if (preview.estimated_seconds == null) return "How long it takes is not known: none of it was made before.";
  const work = preview.estimated_work_seconds == null ? "" : `; ${duration(preview.estimated_work_seconds * 1000)} of work in all`;
  const cost = preview.estimated_cost_micro_usd == null || preview.estimated_cost_micro_usd === 0 ? "" : `, about ${money(preview.estimated_cost_micro_usd)}`;
  return `About ${duration(preview.estimated_seconds * 1000)}, by what its tasks took before${work}${cost}.`;
}
