// States: colour, shape and word together, never colour alone.
import type { ReactNode } from "react";

export type Tone = "succeeded" | "running" | "queued" | "retry" | "failed" | "skipped" | "cancelled" | "stale" | "missing" | "blocked";

const WORDS: Record<string, [Tone, string]> = {
  SUCCEEDED: ["succeeded", "Succeeded"],
  MATERIALIZED: ["succeeded", "Materialized"],
  TRIGGERED: ["succeeded", "Triggered"],
  ACTIVE: ["succeeded", "Active"],
  ALLOWED: ["succeeded", "Allowed"],
  RUNNING: ["running", "Running"],
  CANCELLING: ["cancelled", "Cancelling"],
  QUEUED: ["queued", "Queued"],
  REQUESTED: ["queued", "Requested"],
  PLANNED: ["queued", "Planned"],
  BLOCKED: ["queued", "Waiting"],
  READY: ["queued", "Ready"],
  DISPATCHED: ["queued", "Dispatched"],
  RETRY_WAIT: ["retry", "Retry wait"],
  FAILED: ["failed", "Failed"],
  TIMED_OUT: ["failed", "Timed out"],
  ERROR: ["failed", "Error"],
  REFUSED: ["failed", "Refused"],
  LAST_ATTEMPT_FAILED: ["failed", "Last attempt failed"],
  NEVER_MATERIALIZED: ["missing", "Never made"],
  EXPIRED: ["missing", "Expired"],
  PENDING: ["queued", "Pending"],
  PAUSED_WITH_FAILURES: ["failed", "Paused with failures"],
  SKIPPED: ["skipped", "Skipped"],
  NO_NEW_DATA: ["skipped", "No new data"],
  STALE: ["stale", "Stale"],
  PAUSED: ["skipped", "Paused"],
  CANCELLED: ["cancelled", "Cancelled"],
  QUARANTINED: ["blocked", "Quarantined"],
};

export const toneOf = (state: string): Tone => WORDS[state]?.[0] ?? "queued";
export const wordOf = (state: string): string => WORDS[state]?.[1] ?? state.toLowerCase().replaceAll("_", " ");

const CIRCUMFERENCE = 2 * Math.PI * 5;

function shape(tone: Tone, progress: number | undefined): ReactNode {
  switch (tone) {
    case "succeeded":
      return (
        <>
          <circle cx="7" cy="7" r="6" fill="currentColor" />
          <path d="M4.3 7.2 6.2 9l3.6-4" fill="none" stroke="var(--background)" strokeWidth="1.6" />
        </>
      );
    case "running":
      return (
        <>
          <circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" strokeWidth="2" opacity="0.3" />
          <circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" strokeWidth="2" transform="rotate(-90 7 7)" strokeDasharray={`${String(CIRCUMFERENCE * (progress ?? 0.35))} 100`} />
        </>
      );
    case "queued":
      return <circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" strokeWidth="2" strokeDasharray="2 2" />;
    case "retry":
      return (
        <>
          <path d="M11.6 5.2A5 5 0 1 0 12 8" fill="none" stroke="currentColor" strokeWidth="1.8" />
          <path d="M12.6 2.4v3.4H9.2" fill="none" stroke="currentColor" strokeWidth="1.6" />
        </>
      );
    case "failed":
      return (
        <>
          <rect x="1.5" y="1.5" width="11" height="11" rx="2" fill="currentColor" />
          <path d="m4.5 4.5 5 5m0-5-5 5" stroke="var(--background)" strokeWidth="1.6" />
        </>
      );
    case "skipped":
      return <path d="M3 7h8" stroke="currentColor" strokeWidth="2.4" />;
    case "cancelled":
      return (
        <>
          <circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" strokeWidth="1.6" />
          <path d="m3.5 10.5 7-7" stroke="currentColor" strokeWidth="1.6" />
        </>
      );
    case "stale":
      return (
        <>
          <circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" strokeWidth="1.6" />
          <path d="M7 4v3.3l2 1.3" fill="none" stroke="currentColor" strokeWidth="1.5" />
        </>
      );
    case "missing":
      return <circle cx="7" cy="7" r="5" fill="none" stroke="currentColor" strokeWidth="1.4" />;
    case "blocked":
      return <path d="M7 1.4 12 3v4c0 3-2.2 4.8-5 5.8C4.200 11.800 2 10 2 7V3z" fill="currentColor" />;
  }
}

export function Mark({ tone, progress, label }: { tone: Tone; progress?: number; label?: string }) {
  return (
    <svg width="14" height="14" viewBox="0 0 14 14" color={`var(--${tone})`} role={label === undefined ? undefined : "img"} aria-label={label} aria-hidden={label === undefined}>
      {shape(tone, progress)}
    </svg>
  );
}

export function State({ state, word, title, progress }: { state: string; word?: string; title?: string; progress?: number }) {
  return (
    <span className="state" title={title}>
      <Mark tone={toneOf(state)} {...(progress === undefined ? {} : { progress })} />
      <span style={{ color: `var(--${toneOf(state)})` }}>{word ?? wordOf(state)}</span>
    </span>
  );
}

export function Tones({ tone, children, title }: { tone: Tone; children: ReactNode; title?: string }) {
  return (
    <span className="state" title={title}>
      <Mark tone={tone} />
      <span style={{ color: `var(--${tone})` }}>{children}</span>
    </span>
  );
}
