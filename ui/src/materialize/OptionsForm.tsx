// How it is asked for: chunks of a backfill, priority and labels. What is left alone is decided by the server.
import { Check, Field } from "../parts/fields";
import { labelsOf, numberProblem, thresholdProblem, type Options } from "./choice";

export function optionsProblem(options: Options, isBackfill: boolean): string | undefined {
  const problems = [labelsOf(options.labels).problem, numberProblem(options.priority, -2_147_483_648), ...(isBackfill ? [numberProblem(options.chunk_size, 1), numberProblem(options.max_concurrent_runs, 1), thresholdProblem(options.failure_threshold)] : [])];
  return problems.find((problem) => problem !== undefined);
}

export function OptionsForm({ options, isBackfill, onChange }: { options: Options; isBackfill: boolean; onChange: (options: Options) => void }) {
  const set = (name: keyof Options) => (value: string) => {
    onChange({ ...options, [name]: value });
  };
  const isOpen = options.labels !== "" || options.priority !== "";
  const common = (
    <>
      <Field label="Priority; higher runs first" value={options.priority} placeholder="0" onChange={set("priority")} problem={numberProblem(options.priority, -2_147_483_648)} />
      <Field label="Labels, name=value" isMono rows={2} value={options.labels} placeholder="reason=late data" onChange={set("labels")} problem={labelsOf(options.labels).problem} />
    </>
  );
  return (
    <details className="options-form" open={isOpen || isBackfill}>
      <summary>{isBackfill ? "Chunks, priority and labels" : "Priority and labels"}</summary>
      <div className="fields-grid">
        {isBackfill ? (
          <>
            <Field label="Partitions in a chunk" value={options.chunk_size} placeholder="10" onChange={set("chunk_size")} problem={numberProblem(options.chunk_size, 1)} />
            <Field label="Runs at once" value={options.max_concurrent_runs} placeholder="2" onChange={set("max_concurrent_runs")} problem={numberProblem(options.max_concurrent_runs, 1)} />
            <Field label="Stop after failures" value={options.failure_threshold} placeholder="25 or 10%" onChange={set("failure_threshold")} problem={thresholdProblem(options.failure_threshold)} />
          </>
        ) : null}
        {common}
        {isBackfill ? (
          <Check checked={options.stop_on_failure} onChange={(stop_on_failure) => { onChange({ ...options, stop_on_failure }); }}>
            Plan no chunk after the first failure
          </Check>
        ) : null}
      </div>
    </details>
  );
}
