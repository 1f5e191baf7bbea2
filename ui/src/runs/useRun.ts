// A run and its tasks as they are now: the server sends every row once, then those that change. Merged at most five
// times a second; a page that nobody looks at does not listen.
import { useEffect, useRef, useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { route } from "../api/workspace";

export type Run = Schemas["Run"];
export type Task = Schemas["Task"];

export interface LiveRun {
  run: Run | undefined;
  tasks: readonly Task[];
  hasEnded: boolean;
  error: unknown;
}

const MERGE_MS = 200;
const AGAIN_MS = 1000;

export function useRun(id: string): LiveRun {
  const [shown, setShown] = useState<LiveRun>({ run: undefined, tasks: [], hasEnded: false, error: undefined });
  const ended = useRef(false);
  useEffect(() => {
    const tasks = new Map<string, Task>();
    let run: Run | undefined;
    let source: EventSource | undefined;
    let merging: ReturnType<typeof setTimeout> | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    const merge = () => {
      merging = undefined;
      setShown({ run, tasks: [...tasks.values()], hasEnded: ended.current, error: undefined });
    };
    const soon = () => {
      merging ??= setTimeout(merge, run === undefined ? 0 : MERGE_MS);
    };
    const listen = () => {
      if (isGone || ended.current || source !== undefined || document.visibilityState === "hidden") return;
      source = new EventSource(route(`/api/v1/runs/${id}/events`));
      source.addEventListener("run", (event: MessageEvent<string>) => {
        run = JSON.parse(event.data) as Run;
        soon();
      });
      source.addEventListener("task", (event: MessageEvent<string>) => {
        const task = JSON.parse(event.data) as Task;
        tasks.set(task.task_id, task);
        soon();
      });
      source.addEventListener("end", () => {
        ended.current = true;
        source?.close();
        clearTimeout(merging);
        merge();
      });
      source.onerror = () => {
        source?.close();
        source = undefined;
        if (isGone) return;
        // Why there is no stream is said by the run itself.
        answer(api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } } })).then(
          () => {
            again = setTimeout(listen, AGAIN_MS);
          },
          (error: unknown) => {
            setShown((before) => ({ ...before, error }));
            again = setTimeout(listen, AGAIN_MS);
          },
        );
      };
    };
    const onVisible = () => {
      if (document.visibilityState === "hidden") {
        source?.close();
        source = undefined;
      } else listen();
    };
    document.addEventListener("visibilitychange", onVisible);
    ended.current = false;
    listen();
    return () => {
      isGone = true;
      document.removeEventListener("visibilitychange", onVisible);
      source?.close();
      clearTimeout(merging);
      clearTimeout(again);
    };
  }, [id]);
  return shown;
}

const ACTIVE = new Set(["PLANNED", "BLOCKED", "READY", "DISPATCHED", "RUNNING", "RETRY_WAIT"]);
export const isActive = (task: Task) => ACTIVE.has(task.state);
export const isRunActive = (run: Run) => !["SUCCEEDED", "FAILED", "CANCELLED"].includes(run.state);

export function taskName(task: { asset_key: string; partition?: string | null }): string {
  const key = task.asset_key.replace("/", ".");
  // Of several dimensions the values say enough.
  return task.partition == null ? key : `${key}[${task.partition.replace(/(^|,)\w+=/g, (_, comma: string) => (comma === "" ? "" : " "))}]`;
}
