import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, assetPath, once } from "../api/client";
import { dotted } from "../parts/format";
import { toast, toastError } from "../parts/toasts";

/** What can be paused and resumed. */
export interface Automation {
  kind: "schedule" | "sensor" | "condition";
  /** Of a condition, the key of its asset. */
  name: string;
  status: string;
  state_version: number;
}

/** Pauses what is active, resumes what is paused. */
export function useToggle(automation: Automation) {
  const queries = useQueryClient();
  const { kind, name } = automation;
  const isOn = automation.status !== "PAUSED";
  const mutation = useMutation({
    mutationFn: () => {
      const body = { expected_state_version: automation.state_version };
      const header = once();
      if (kind === "condition") {
        const request = { params: { path: assetPath(name), header }, body: {} };
        return answer(isOn ? api.POST("/api/v1/orchestration/conditions/{namespace}/{name}/pause", request) : api.POST("/api/v1/orchestration/conditions/{namespace}/{name}/resume", request));
      }
      if (kind === "schedule") {
        const request = { params: { path: { schedule: name }, header }, body };
        return answer(isOn ? api.POST("/api/v1/orchestration/schedules/{schedule}/pause", request) : api.POST("/api/v1/orchestration/schedules/{schedule}/resume", request));
      }
      const request = { params: { path: { sensor: name }, header }, body };
      return answer(isOn ? api.POST("/api/v1/orchestration/sensors/{sensor}/pause", request) : api.POST("/api/v1/orchestration/sensors/{sensor}/resume", request));
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [`${kind}s`] });
      const what = kind === "condition" ? `The condition of ${dotted(name)}` : name;
      toast(isOn ? `${what} is paused` : kind === "schedule" ? `${what} ticks again` : `${what} is evaluated again`);
    },
    onError: toastError,
  });
  return { isOn, toggle: mutation.mutate, isPending: mutation.isPending };
}
