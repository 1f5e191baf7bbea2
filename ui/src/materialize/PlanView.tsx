// What would run, asset by asset, before anything does.
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import { count, dotted, plural } from "../parts/format";

type Plan = Schemas["Plan"];

const MOST_ASSETS = 50;
const MOST_WARNINGS = 5;

/** Planned assets with the number of their tasks, those of the first stage first. */
export function byAsset(plan: Plan | undefined): [string, number][] {
  const found = new Map<string, number>();
  for (const task of plan?.tasks ?? []) {
    const key = task.asset_keys[0] ?? "";
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return [...found];
}

export function PlanView({ plan }: { plan: Plan }) {
  const planned = useMemo(() => byAsset(plan), [plan]);
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="scroll" style={{ maxHeight: 180 }} tabIndex={0} role="group" aria-label="Planned tasks">
        <table className="table">
          <tbody>
            {planned.slice(0, MOST_ASSETS).map(([key, tasks]) => (
              <tr key={key}>
                <td className="mono">{dotted(key)}</td>
                <td className="right">{plural(tasks, "task")}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {planned.length > MOST_ASSETS ? <p className="muted">and {count(planned.length - MOST_ASSETS)} more assets</p> : null}
      </div>
      {plan.warnings.slice(0, MOST_WARNINGS).map((warning) => (
        <p key={warning} className="notice">
          {warning}
        </p>
      ))}
      {plan.warnings.length > MOST_WARNINGS ? <p className="muted">and {plural(plan.warnings.length - MOST_WARNINGS, "warning")} more</p> : null}
    </div>
  );
}
