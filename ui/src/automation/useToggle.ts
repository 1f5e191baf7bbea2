import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api, once, type Schemas } from "../api/client";
import { toast, toastError } from "../parts/toasts";

/** Pauses a schedule that is active, resumes one that is paused. */
export function useToggle(schedule: Schemas["Schedule"]) {
  const queries = useQueryClient();
  const isOn = schedule.status !== "PAUSED";
  const mutation = useMutation({
    mutationFn: () => {
      const request = { params: { path: { schedule: schedule.name }, header: once() }, body: { expected_state_version: schedule.state_version } };
      return answer(isOn ? api.POST("/api/v1/orchestration/schedules/{schedule}/pause", request) : api.POST("/api/v1/orchestration/schedules/{schedule}/resume", request));
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["schedules"] });
      toast(isOn ? `${schedule.name} is paused` : `${schedule.name} ticks again`);
    },
    onError: toastError,
  });
  return { isOn, toggle: mutation.mutate, isPending: mutation.isPending };
}
