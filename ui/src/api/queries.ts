// Questions that pages ask, with the names that their answers are kept by: the first word is the family that changes
// of the workspace touch.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer, api, assetPath } from "./client";

export const PAGE = 50;

export interface RunFilters {
  state?: string;
  source?: string;
  asset?: string;
  partition?: string;
  created_after?: string;
  created_before?: string;
}

const given = <T extends object>(filters: T): Partial<T> =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined && value !== "")) as Partial<T>;

export const runsQuery = (filters: RunFilters, limit = PAGE) =>
  infiniteQueryOptions({
    queryKey: ["runs", "pages", filters, limit],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/runs", { params: { query: { ...given(filters), limit, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });

export const someRunsQuery = (filters: RunFilters, limit: number) =>
  queryOptions({
    queryKey: ["runs", "some", filters, limit],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/runs", { params: { query: { ...given(filters), limit } }, signal })),
    placeholderData: keepPreviousData,
  });

export const whyQuery = (run: string, enabled: boolean) =>
  queryOptions({
    queryKey: ["run", run, "why"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/runs/{run_id}/why", { params: { path: { run_id: run } }, signal })),
    enabled,
  });

export const taskQuery = (run: string, task: string) =>
  queryOptions({
    queryKey: ["run", run, "task", task],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/runs/{run_id}/tasks/{task_id}", { params: { path: { run_id: run, task_id: task } }, signal })),
  });

export const runPlanQuery = (run: string, enabled: boolean) =>
  queryOptions({
    queryKey: ["run", run, "plan"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/runs/{run_id}/plan", { params: { path: { run_id: run } }, signal })),
    enabled,
    placeholderData: keepPreviousData,
  });

export const graphQuery = (selection: string) =>
  queryOptions({
    queryKey: ["graph", selection],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/graph", { params: { query: selection === "" ? {} : { selection } }, signal })),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const assetsQuery = (selection: string, { needs_attention = false, sort = "", limit = 100 }: { needs_attention?: boolean; sort?: string; limit?: number } = {}) =>
  infiniteQueryOptions({
    queryKey: ["assets", selection, needs_attention, sort, limit],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/assets", {
          params: { query: { ...(selection === "" ? {} : { selection }), ...(needs_attention ? { needs_attention } : {}), ...(sort === "" ? {} : { sort }), limit, ...(pageParam === "" ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    retry: false,
  });

/** Assets of one status of freshness; families as those of assets, since data makes them fresh. */
export const freshnessQuery = (status: "FAIL" | "WARN" | "PASS", limit: number) =>
  queryOptions({
    queryKey: ["assets", "freshness", status, limit],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/freshness", { params: { query: { status, limit } }, signal })),
    // Data grows old without anything happening.
    refetchInterval: 60_000,
  });

export const assetQuery = (key: string) =>
  queryOptions({
    queryKey: ["asset", key],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets/{namespace}/{name}", { params: { path: assetPath(key) }, signal })),
    retry: false,
  });

export const whyStaleQuery = (key: string) =>
  queryOptions({
    queryKey: ["asset", key, "why"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets/{namespace}/{name}/why", { params: { path: assetPath(key) }, signal })),
    retry: false,
  });

export const summaryQuery = (key: string, buckets: number, from: number, count: number | undefined) =>
  queryOptions({
    queryKey: ["partitions", key, "summary", buckets, from, count],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/assets/{namespace}/{name}/partitions/summary", {
          params: { path: assetPath(key), query: { buckets, from, ...(count === undefined ? {} : { count }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });

export const partitionsQuery = (key: string, status: string) =>
  infiniteQueryOptions({
    queryKey: ["partitions", key, "list", status],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/assets/{namespace}/{name}/partitions", {
          params: { path: assetPath(key), query: { limit: 100, newest_first: true, ...(status === "" ? {} : { status }), ...(pageParam === "" ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });

export const historyQuery = (key: string) =>
  infiniteQueryOptions({
    queryKey: ["history", key],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/assets/{namespace}/{name}/materializations", {
          params: { path: assetPath(key), query: { limit: 100, ...(pageParam === "" ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });

export const materializationQuery = (key: string, partition: string, enabled = true) =>
  queryOptions({
    queryKey: ["history", key, "latest", partition],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets/{namespace}/{name}/materialization", { params: { path: assetPath(key), query: partition === "" ? {} : { partition } }, signal })),
    enabled,
    retry: false,
  });

export const lineageQuery = (key: string, direction: "up" | "down", partition: string) =>
  queryOptions({
    queryKey: ["asset", key, "lineage", direction, partition],
    queryFn: ({ signal }) =>
      answer(
        api.GET("/api/v1/assets/{namespace}/{name}/lineage", {
          params: { path: assetPath(key), query: { direction, depth: 5, ...(partition === "" ? {} : { partition }) } },
          signal,
        }),
      ),
    retry: false,
  });

export const quarantineQuery = queryOptions({
  queryKey: ["quarantine"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/quarantine", { params: { query: { limit: 100 } }, signal })),
});

export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/schedules", { params: { query: { limit: 100 } }, signal })),
});

export const schedulePagesQuery = infiniteQueryOptions({
  queryKey: ["schedules", "pages"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/orchestration/schedules", { params: { query: { limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
});

export const sensorPagesQuery = infiniteQueryOptions({
  queryKey: ["sensors", "pages"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/orchestration/sensors", { params: { query: { limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
});

export const sensorsQuery = queryOptions({
  queryKey: ["sensors"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/sensors", { params: { query: { limit: 100 } }, signal })),
});

export const sensorQuery = (sensor: string) =>
  queryOptions({
    queryKey: ["sensors", sensor],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/sensors/{sensor}", { params: { path: { sensor } }, signal })),
    retry: false,
  });

export const evalsQuery = (sensor: string, limit: number) =>
  queryOptions({
    queryKey: ["sensors", sensor, "evals", limit],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/sensors/{sensor}/evals", { params: { path: { sensor }, query: { limit } }, signal })),
  });

export const evalPagesQuery = (sensor: string, status: string) =>
  infiniteQueryOptions({
    queryKey: ["sensors", sensor, "evals", "pages", status],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/orchestration/sensors/{sensor}/evals", {
          params: { path: { sensor }, query: { limit: 25, ...(status === "" ? {} : { status }), ...(pageParam === "" ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });

export const ticksQuery = (schedule: string, limit: number) =>
  queryOptions({
    queryKey: ["schedules", schedule, "ticks", limit],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/orchestration/schedules/{schedule}/ticks", { params: { path: { schedule }, query: { limit } }, signal })),
  });

export const previewQuery = (schedule: string) =>
  queryOptions({
    queryKey: ["schedules", schedule, "preview"],
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/orchestration/schedules/{schedule}/preview", { params: { path: { schedule }, query: { n: 5 } }, signal })),
  });

export const backfillsQuery = (state: string) =>
  infiniteQueryOptions({
    queryKey: ["backfills", "pages", state],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/orchestration/backfills", { params: { query: { limit: PAGE, ...(state === "" ? {} : { state }), ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });

export const backfillQuery = (id: string) =>
  queryOptions({
    queryKey: ["backfills", id],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/backfills/{backfill_id}", { params: { path: { backfill_id: id } }, signal })),
    retry: false,
  });

export const chunksQuery = (id: string, state = "") =>
  infiniteQueryOptions({
    queryKey: ["backfills", id, "chunks", state],
    queryFn: ({ pageParam, signal }) =>
      answer(
        api.GET("/api/v1/orchestration/backfills/{backfill_id}/chunks", {
          params: { path: { backfill_id: id }, query: { limit: 100, ...(state === "" ? {} : { state }), ...(pageParam === "" ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });

export const admissionQuery = queryOptions({
  queryKey: ["admission"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/admission", { signal })),
});

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/settings", { signal })),
});

export const workersQuery = queryOptions({
  queryKey: ["admission", "workers"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/workers", { signal })),
});

export const tablesQuery = queryOptions({
  queryKey: ["admission", "tables"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/tables", { signal })),
  retry: false,
});

export const readinessQuery = queryOptions({
  queryKey: ["admission", "readiness"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/readyz", { signal })),
  retry: false,
});

export const deploymentQuery = queryOptions({
  queryKey: ["deployment"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/deployments/current", { signal })),
  retry: false,
});

export const deploymentsQuery = infiniteQueryOptions({
  queryKey: ["deployment", "pages"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/deployments", { params: { query: { limit: 25, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
});

export const deploymentByNumberQuery = (number: number) =>
  queryOptions({
    queryKey: ["deployment", "number", number],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/deployments/{number}", { params: { path: { number } }, signal })),
    retry: false,
  });

export const diffQuery = (from: number, to: number) =>
  infiniteQueryOptions({
    queryKey: ["diff", from, to],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/deployments/{number}/diff", { params: { path: { number: from }, query: { to, limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    retry: false,
    // Deployments do not change.
    staleTime: Infinity,
  });

export const versionsQuery = (key: string) =>
  infiniteQueryOptions({
    queryKey: ["asset", key, "versions"],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/assets/{namespace}/{name}/versions", { params: { path: assetPath(key), query: { limit: 10, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    retry: false,
  });

export const sqlTablesQuery = queryOptions({
  queryKey: ["sql tables"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/sql/tables", { signal })),
  staleTime: Infinity,
});

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/me", { signal })),
  retry: false,
  staleTime: 60_000,
});

/** Ways into the server; anybody may ask. */
export const loginOptionsQuery = queryOptions({
  queryKey: ["login options"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/login-options", { signal })),
  staleTime: Infinity,
});

/** Workspaces that the viewer may open. */
export const workspacesQuery = queryOptions({
  queryKey: ["workspaces"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/workspaces", { params: { query: { limit: 100 } }, signal })),
  retry: false,
  staleTime: 60_000,
});

export const keysQuery = (all: boolean) =>
  infiniteQueryOptions({
    queryKey: ["keys", all],
    queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/admin/keys", { params: { query: { limit: PAGE, all, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    // When a key was last used is no change of the workspace.
    refetchInterval: 15_000,
  });

export const sessionsQuery = infiniteQueryOptions({
  queryKey: ["sessions"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/admin/sessions", { params: { query: { limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
  refetchInterval: 15_000,
});

export const notificationsQuery = infiniteQueryOptions({
  queryKey: ["notifications", "pages"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/notifications", { params: { query: { limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
});

export const notificationHistoryQuery = (notification: string) =>
  queryOptions({
    queryKey: ["notifications", notification, "history"],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/notifications/{notification}/history", { params: { path: { notification }, query: { limit: 25 } }, signal })),
  });

export const conditionPagesQuery = infiniteQueryOptions({
  queryKey: ["conditions", "pages"],
  queryFn: ({ pageParam, signal }) => answer(api.GET("/api/v1/orchestration/conditions", { params: { query: { limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
});

export const conditionQuery = (key: string) =>
  queryOptions({
    queryKey: ["conditions", key],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/conditions/{namespace}/{name}", { params: { path: assetPath(key) }, signal })),
    retry: false,
  });

export const conditionEvaluationsQuery = (key: string) =>
  infiniteQueryOptions({
    queryKey: ["conditions", key, "evaluations"],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/orchestration/conditions/{namespace}/{name}/evaluations", { params: { path: assetPath(key), query: { limit: 10, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });

export const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: ({ signal }) => answer(api.GET("/api/v1/version", { signal })),
  staleTime: Infinity,
});

export const auditQuery = (filters: { action?: string; outcome?: string; principal?: string; subject?: string; since?: string }) =>
  infiniteQueryOptions({
    queryKey: ["audit", filters],
    queryFn: ({ pageParam, signal }) =>
      answer(api.GET("/api/v1/audit", { params: { query: { ...given(filters), limit: PAGE, ...(pageParam === "" ? {} : { cursor: pageParam }) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
