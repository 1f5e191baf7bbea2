import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, once } from "../api/client";
import { toast, toastError } from "../parts/toasts";

/** What can be paused and resumed. */
export interface Automation {
  kind: "schedule" | "sensor";
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
      if (kind === "schedule") {
        const request = { params: { path: { schedule: name }, header }, body };
        return answer(isOn ? api.POST("/api/v1/orchestration/schedules/{schedule}/pause", request) : api.POST("/api/v1/orchestration/schedules/{schedule}/resume", request));
      }
      const request = { params: { path: { sensor: name }, header }, body };
      return answer(isOn ? api.POST("/api/v1/orchestration/sensors/{sensor}/pause", request) : api.POST("/api/v1/orchestration/sensors/{sensor}/resume", request));
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [`${kind}s`] });
      toast(isOn ? `${name} is paused` : kind === "schedule" ? `${name} ticks again` : `${name} is evaluated again`);
    },
    onError: toastError,
  });
  return { isOn, toggle: mutation.mutate, isPending: mutation.isPending };
}
