// What a sensor would do now, shown before anything happens; then, if that is wanted, the same for real.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, once, type Schemas } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { plural, runHref } from "../parts/format";
import { ProblemBox } from "../parts/Panel";
import { State } from "../parts/State";
import { toast } from "../parts/toasts";
import { parsed, SAMPLES } from "./payload";

type Sensor = Schemas["Sensor"];
type Outcome = Schemas["SensorEvaluation"];

export function EvaluateDialog({ sensor, onClose }: { sensor: Sensor; onClose: () => void }) {
  const takesMessages = sensor.kind !== "poll";
  const [text, setText] = useState(takesMessages ? (SAMPLES[sensor.kind] ?? "{}") : "");
  const [cursor, setCursor] = useState("");
  const payload = takesMessages ? parsed(text) : { value: undefined };
  const ask = (dry_run: boolean) =>
    answer(
      api.POST("/api/v1/orchestration/sensors/{sensor}/evaluate", {
        params: { path: { sensor: sensor.name }, header: once() },
        body: { dry_run, ...(payload.value === undefined ? {} : { payload: payload.value as never }), ...(cursor === "" || !dry_run ? {} : { cursor }) },
      }),
    );
  const look = useMutation({ mutationFn: () => ask(true) });
  const evaluate = useMutation({
    mutationFn: () => ask(false),
    onSuccess: (outcome) => {
      const run = outcome.requests?.find((request) => request.run_id != null)?.run_id;
      toast(outcome.status === "TRIGGERED" ? `${sensor.name} asked for ${plural(outcome.requests?.length ?? 0, "run")}` : `${sensor.name} asked for nothing${outcome.reason == null ? "" : `: ${outcome.reason}`}`, run == null ? {} : { href: runHref(run), link: "Watch" });
      onClose();
    },
  });
  const outcome = look.data;
  const change = (set: (value: string) => void) => (value: string) => {
    set(value);
    look.reset();
  };
  const whyNot = outcome === undefined ? "Look first" : outcome.status === "FAILED" ? "Its function failed" : cursor !== "" ? "A cursor of your own is for a look only" : undefined;
  return (
    <Dialog title={`Dry run of ${sensor.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!look.isPending && payload.problem === undefined) look.mutate();
        }}
      >
        <div className="content">
          <p>{sensor.function == null ? "It shows what the sensor would ask for." : "Its function is called, and what it asks for is shown."} No run is started and the cursor stays where it is.</p>
          {takesMessages ? (
            <label className="line">
              {sensor.kind === "push" ? "Data of the message, as JSON" : "Fields of the message, as JSON"}
              <textarea
                className="field mono"
                rows={5}
                spellCheck={false}
                value={text}
                aria-invalid={payload.problem !== undefined}
                onChange={(event) => {
                  change(setText)(event.target.value);
                }}
              />
              {payload.problem === undefined ? null : <span style={{ color: "var(--failed)" }}>{payload.problem}</span>}
            </label>
          ) : (
            <label className="line">
              Cursor, if another than its own
              <input
                className="field mono"
                value={cursor}
                placeholder={sensor.cursor ?? "none"}
                onChange={(event) => {
                  change(setCursor)(event.target.value);
                }}
              />
            </label>
          )}
          {look.error === null ? null : <ProblemBox error={look.error} />}
          {evaluate.error === null ? null : <ProblemBox error={evaluate.error} />}
          {look.isPending ? <p className="muted">Evaluating…</p> : null}
          {outcome === undefined ? null : <Seen outcome={outcome} />}
        </div>
        <footer>
          <span className="grow" />
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button
            type="button"
            className="button"
            disabled={whyNot !== undefined || evaluate.isPending}
            title={whyNot}
            onClick={() => {
              evaluate.mutate();
            }}
          >
            {evaluate.isPending ? "Evaluating…" : (outcome?.requests?.length ?? 0) > 0 ? `Evaluate and ask for ${plural(outcome?.requests?.length ?? 0, "run")}` : "Evaluate for real"}
          </button>
          <button type="submit" className="button primary" disabled={look.isPending || payload.problem !== undefined}>
            {outcome === undefined ? "Dry run" : "Dry run again"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Seen({ outcome }: { outcome: Outcome }) {
  const requests = outcome.requests ?? [];
  const added = Object.entries(outcome.add_partitions ?? {});
  const moves = outcome.cursor_after != null && outcome.cursor_after !== outcome.cursor_before;
  return (
    <section className="panel" aria-label="What would happen">
      <header>
        <h2>What would happen</h2>
        <State state={outcome.status} word={outcome.status === "TRIGGERED" ? `Would ask for ${plural(requests.length, "run")}` : outcome.status === "FAILED" ? "Failed" : "Would ask for nothing"} />
      </header>
      <div className="body stack" style={{ gap: 8 }}>
        {outcome.reason == null ? null : outcome.status === "FAILED" ? <pre style={{ color: "var(--failed)" }}>{outcome.reason}</pre> : <p className="muted">{outcome.reason}</p>}
        {requests.length === 0 ? null : (
          <div className="scroll" style={{ maxHeight: 200 }} tabIndex={0} role="group" aria-label="Runs that it would ask for">
            <table className="table">
              <thead>
                <tr>
                  <th>Assets</th>
                  <th>Partition</th>
                  <th className="right">Tasks</th>
                  <th>Run key</th>
                </tr>
              </thead>
              <tbody>
                {requests.map((request, index) => (
                  <tr key={index}>
                    <td className="mono">{request.selection}</td>
                    <td className="mono">{request.partition ?? "–"}</td>
                    <td className="right">{request.tasks ?? "–"}</td>
                    <td className="mono muted">{request.problem == null ? (request.run_key ?? "") : <span style={{ color: "var(--failed)" }}>{request.problem}</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {added.map(([name, keys]) => (
          <p key={name}>
            Adds to partitions <span className="mono">{name}</span>: <span className="mono">{keys.slice(0, 20).join(", ")}</span>
            {keys.length > 20 ? ` and ${String(keys.length - 20)} more` : ""}
          </p>
        ))}
        <dl className="facts">
          <dt>Cursor</dt>
          <dd className="mono">
            {moves ? (
              <>
                {outcome.cursor_before ?? "none"} → {outcome.cursor_after}
              </>
            ) : (
              <span className="muted">stays {outcome.cursor_before ?? "none"}</span>
            )}
          </dd>
        </dl>
        {outcome.output == null || outcome.output === "" ? null : (
          <details open>
            <summary>Output</summary>
            <pre style={{ maxHeight: 160, overflow: "auto" }} tabIndex={0}>{outcome.output}</pre>
          </details>
        )}
      </div>
    </section>
  );
}
