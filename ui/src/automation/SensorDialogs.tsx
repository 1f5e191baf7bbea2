// A message for a sensor, and another place to go on from.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, once, type Schemas } from "../api/client";
import { ActionDialog } from "../parts/ActionDialog";
import { Field } from "../parts/fields";
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
    <ActionDialog
      title={`Send a message to ${sensor.name}`}
      onClose={onClose}
      action="Send the message"
      onAct={() => {
        push.mutate();
      }}
      change={push}
      disabled={id === "" || payload.problem !== undefined}
    >
      <p>It is evaluated with the message as if a webhook had sent it, and the runs it asks for are started. A message counts once by its id.</p>
      <Field label="Id" isMono value={id} onChange={setId} />
      <Field label="Data, as JSON" isMono rows={6} value={text} onChange={setText} problem={payload.problem} />
    </ActionDialog>
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
    <ActionDialog
      title={`Reset the cursor of ${sensor.name}`}
      onClose={onClose}
      action={cursor === "" ? "Begin anew" : "Set the cursor"}
      onAct={() => {
        reset.mutate();
      }}
      change={reset}
      disabled={cursor === (sensor.cursor ?? "")}
      isDangerous
    >
      <p>The next evaluation goes on from here. What it has asked for before is asked for again only under another run key.</p>
      <Field label="Cursor; empty begins anew" isMono rows={3} value={cursor} onChange={setCursor} />
    </ActionDialog>
  );
}
