// What was asked for, by whom.
import { exactly } from "../parts/format";
import { Panel } from "../parts/Panel";
import { partitionsText } from "./text";
import type { Run } from "./useRun";

export function Request({ run }: { run: Run }) {
  return (
    <Panel>
      <div className="body" style={{ paddingTop: 12 }}>
        <dl className="facts">
          <dt>Selection</dt>
          <dd className="mono">{run.selection ?? "–"}</dd>
          <dt>Partitions</dt>
          <dd>{partitionsText(run) === "" ? "as the assets have them" : partitionsText(run)}</dd>
          <dt>Configuration</dt>
          <dd className="mono">{Object.keys(run.config ?? {}).length === 0 ? "–" : JSON.stringify(run.config, undefined, 2)}</dd>
          <dt>Labels</dt>
          <dd>{Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`).join(", ") || "–"}</dd>
          <dt>Asked for by</dt>
          <dd>
            {run.requested_by}, {exactly(run.created_at).split("\n")[0]}
          </dd>
          <dt>Run key</dt>
          <dd className="mono">{run.run_key}</dd>
          <dt>Priority</dt>
          <dd>{run.priority}</dd>
          {run.cancelled_by == null ? null : (
            <>
              <dt>Cancelled by</dt>
              <dd>
                {run.cancelled_by} {run.cancel_reason ?? ""}
              </dd>
            </>
          )}
        </dl>
      </div>
    </Panel>
  );
}
