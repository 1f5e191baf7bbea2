// Panels fail alone, can be tried again, and have their size before they have their data.
import type { UseQueryResult } from "@tanstack/react-query";
import { Component, type ReactNode } from "react";
import { RequestFailed } from "../api/client";
import { Coded } from "./Coded";

export function ProblemBox({ error, again }: { error: unknown; again?: () => void }) {
  const problem = error instanceof RequestFailed ? error.problem : undefined;
  const request = error instanceof RequestFailed ? error.request : undefined;
  const detail = error instanceof Error ? error.message : String(error);
  const title = error instanceof RequestFailed && error.status === 0 ? "Not reachable" : (problem?.title ?? "Something went wrong");
  return (
    <div className="problem" role="alert">
      <strong>{title}</strong>
      {detail.includes("\n") ? <pre>{detail}</pre> : <span><Coded text={detail} /></span>}
      {problem?.violations?.map((violation) => (
        <span key={violation.field + violation.message}>
          <code>{violation.field}</code>: {violation.message}
        </span>
      ))}
      {again === undefined && request === undefined ? null : (
        <span className="row wrap">
          {again === undefined ? null : (
            <button type="button" className="button small" onClick={again}>
              Try again
            </button>
          )}
          {request === undefined ? null : (
            <button
              type="button"
              className="button quiet small muted"
              title="Copy the id by which the log of the server knows this request"
              onClick={() => {
                void navigator.clipboard.writeText(request);
              }}
            >
              request <span className="mono">{request}</span>
            </button>
          )}
        </span>
      )}
    </div>
  );
}

export function Skeleton({ rows = 3 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" style={{ padding: "10px 12px" }}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} style={{ height: 32, display: "flex", alignItems: "center" }}>
          <div className="skeleton" style={{ width: `${String(70 - ((row * 17) % 40))}%` }} />
        </div>
      ))}
    </div>
  );
}

/** Shows an answer, what is known of it while it is asked for, or why there is none. */
export function Shown<T>({ query, rows, children }: { query: UseQueryResult<T>; rows?: number; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null)
    return (
      <div style={{ padding: 12 }}>
        <ProblemBox error={query.error} again={() => void query.refetch()} />
      </div>
    );
  return <Skeleton {...(rows === undefined ? {} : { rows })} />;
}

export function Panel({ title, aside, children, label }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; label?: string }) {
  return (
    <section className="panel" aria-label={label}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      <Guard>{children}</Guard>
    </section>
  );
}

/** Keeps a failure of its content to itself. */
export class Guard extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div style={{ padding: 12 }}>
        <ProblemBox
          error={this.state.error}
          again={() => {
            this.setState({ error: undefined });
          }}
        />
      </div>
    );
  }
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
