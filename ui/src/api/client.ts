// The interface of the server, typed by its description. Every request goes through here.
import createClient from "openapi-fetch";
import { useSyncExternalStore } from "react";
import type { components, paths } from "./schema";
import { route } from "./workspace";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** Why a request was not answered: the problem document of the server, or that it could not be reached. */
export class RequestFailed extends Error {
  readonly status: number;
  readonly problem: Problem | undefined;
  /** By what the server's own log knows the request. */
  readonly request: string | undefined;

  constructor(status: number, problem: Problem | undefined, request?: string) {
    super(problem?.detail ?? (status === 0 ? "The server cannot be reached." : `The server answered ${String(status)}.`));
    this.status = status;
    this.problem = problem;
    this.request = request;
  }

  /** Whether asking again may help. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 503;
  }
}

export const api = createClient<paths>({
  baseUrl: "/",
  credentials: "same-origin",
  fetch: async (request) => {
    try {
      const { pathname, search } = new URL(request.url);
      const path = route(pathname);
      return await fetch(path === pathname ? request : new Request(path + search, request));
    } catch (error) {
      if (request.signal.aborted) throw error;
      throw new RequestFailed(0, undefined);
    }
  },
});

interface Answered<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

let isSignedOut = false;
const listeners = new Set<() => void>();

function setSignedOut(value: boolean): void {
  if (isSignedOut === value) return;
  isSignedOut = value;
  for (const listener of listeners) listener();
}

/** Whether the server does not know this browser, or no longer. */
export const useSignedOut = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isSignedOut,
  );

/** What was asked for, or an error that says why there is none. A change is answered when the server shows it. */
export async function answer<T>(asked: Promise<Answered<T>>): Promise<T> {
  const { data, error, response } = await asked;
  // Some routes answer anybody, and so say nothing about who asks.
  if (response.status === 401) setSignedOut(true);
  else if (response.ok && !/\/(readyz|healthz|version|login-options)$/.test(response.url)) setSignedOut(false);
  if (data !== undefined) {
    const event = eventOf(data);
    if (event !== undefined) await folded(event);
    return data;
  }
  throw new RequestFailed(response.status, typeof error === "object" && error !== null ? (error as Problem) : undefined, response.headers.get("x-request-id") ?? undefined);
}

/** The event by which a change was accepted, if the answer is about one. */
export function eventOf(data: unknown): string | undefined {
  const event = typeof data === "object" && data !== null ? (data as { accepted_event_id?: unknown }).accepted_event_id : undefined;
  return typeof event === "string" && event !== "" ? event : undefined;
}

/** Longest wait for a change to be seen: what is asked for later has it soon. */
const PATIENCE_MS = 5000;

/** Waits until the server shows a change, so that what is asked for next has it. */
async function folded(event: string): Promise<void> {
  try {
    await api.GET("/api/v1/admission", { params: { query: { wait_for_event_id: event, timeout_ms: PATIENCE_MS } } });
  } catch {
    // The change is made all the same.
  }
}

/** A fresh name for a change, so that asking again does it once. */
export const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

/** The two parts of `namespace/name`, as paths of requests take them. */
export function assetPath(key: string): { namespace: string; name: string } {
  const at = key.indexOf("/");
  return { namespace: key.slice(0, at), name: key.slice(at + 1) };
}
