// What a sensor would do now, shown before anything happens; then, if that is wanted, the same for real.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, once, type Schemas } from "../api/client";
import { ActionDialog } from "../parts/ActionDialog";
import { Field } from "../parts/fields";
import { plural, runHref } from "../parts/format";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
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
    <ActionDialog
      title={`Dry run of ${sensor.name}`}
      onClose={onClose}
      action={outcome === undefined ? "Dry run" : "Dry run again"}
      onAct={() => {
        look.mutate();
      }}
      change={{ isPending: look.isPending, error: look.error ?? evaluate.error }}
      disabled={payload.problem !== undefined}
      others={
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
      }
    >
      <p>{sensor.function == null ? "It shows what the sensor would ask for." : "Its function is called, and what it asks for is shown."} No run is started and the cursor stays where it is.</p>
      {takesMessages ? (
        <Field label={sensor.kind === "push" ? "Data of the message, as JSON" : "Fields of the message, as JSON"} isMono rows={5} value={text} onChange={change(setText)} problem={payload.problem} />
      ) : (
        <Field label="Cursor, if another than its own" isMono value={cursor} placeholder={sensor.cursor ?? "none"} onChange={change(setCursor)} />
      )}
      {look.isPending ? <p className="muted">Evaluating…</p> : null}
      {outcome === undefined ? null : <Seen outcome={outcome} />}
    </ActionDialog>
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
          <Table
            label="Runs that it would ask for"
            items={requests}
            id={(request) => `${request.selection} ${request.partition ?? ""} ${request.run_key ?? ""}`}
            columns={[
              { head: "Assets", className: "mono", cell: (request) => request.selection },
              { head: "Partition", className: "mono", cell: (request) => request.partition ?? "–" },
              { head: "Tasks", className: "right", cell: (request) => request.tasks ?? "–" },
              { head: "Run key", className: "mono muted", cell: (request) => (request.problem == null ? (request.run_key ?? "") : <span style={{ color: "var(--failed)" }}>{request.problem}</span>) },
            ]}
          />
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
