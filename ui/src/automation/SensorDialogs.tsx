// A message for a sensor, and another place to go on from.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, once, type Schemas } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { ProblemBox } from "../parts/Panel";
import { toast } from "../parts/toasts";
import { parsed, SAMPLES } from "./payload";

type Sensor = Schemas["Sensor"];

export function PushDialog({ sensor, onClose }: { sensor: Sensor; onClose: () => void }) {
  const [id, setId] = useState(() => `by-hand-${crypto.randomUUID().slice(0, 8)}`);
  const [text, setText] = useState(SAMPLES["push"] ?? "{}");
  const queries = useQueryClient();
  const payload = parsed(text);
  const push = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/orchestration/sensors/{sensor}/push", { params: { path: { sensor: sensor.name } }, body: { message_id: id, data: (payload.value ?? {}) as never } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["sensors"] });
      toast(`${sensor.name} has the message ${id}`);
      onClose();
    },
  });
  return (
    <Dialog title={`Send a message to ${sensor.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (id !== "" && payload.problem === undefined && !push.isPending) push.mutate();
        }}
      >
        <div className="content">
          <p>It is evaluated with the message as if a webhook had sent it, and the runs it asks for are started. A message counts once by its id.</p>
          <label className="line">
            Id
            <input
              className="field mono"
              value={id}
              onChange={(event) => {
                setId(event.target.value);
              }}
            />
          </label>
          <label className="line">
            Data, as JSON
            <textarea
              className="field mono"
              rows={6}
              spellCheck={false}
              value={text}
              aria-invalid={payload.problem !== undefined}
              onChange={(event) => {
                setText(event.target.value);
              }}
            />
            {payload.problem === undefined ? null : <span style={{ color: "var(--failed)" }}>{payload.problem}</span>}
          </label>
          {push.error === null ? null : <ProblemBox error={push.error} />}
        </div>
        <footer>
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" className="button primary" disabled={id === "" || payload.problem !== undefined || push.isPending}>
            Send the message
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

export function ResetCursorDialog({ sensor, onClose }: { sensor: Sensor; onClose: () => void }) {
  const [cursor, setCursor] = useState(sensor.cursor ?? "");
  const queries = useQueryClient();
  const reset = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/orchestration/sensors/{sensor}/reset-cursor", {
          params: { path: { sensor: sensor.name }, header: once() },
          body: { expected_state_version: sensor.state_version, ...(cursor === "" ? {} : { cursor }) },
        }),
      ),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["sensors"] });
      toast(cursor === "" ? `${sensor.name} begins anew` : `${sensor.name} goes on from ${cursor}`);
      onClose();
    },
  });
  return (
    <Dialog title={`Reset the cursor of ${sensor.name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!reset.isPending) reset.mutate();
        }}
      >
        <div className="content">
          <p>The next evaluation goes on from here. What it has asked for before is asked for again only under another run key.</p>
          <label className="line">
            Cursor; empty begins anew
            <textarea
              className="field mono"
              rows={3}
              spellCheck={false}
              value={cursor}
              onChange={(event) => {
                setCursor(event.target.value);
              }}
            />
          </label>
          {reset.error === null ? null : <ProblemBox error={reset.error} />}
        </div>
        <footer>
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" className="button danger" disabled={reset.isPending || cursor === (sensor.cursor ?? "")}>
            {cursor === "" ? "Begin anew" : "Set the cursor"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
