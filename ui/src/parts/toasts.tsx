import { useSyncExternalStore } from "react";
import { Link } from "wouter";

interface Toast {
  id: number;
  text: string;
  href?: string;
  link?: string;
  isError?: boolean;
}

let toasts: readonly Toast[] = [];
const listeners = new Set<() => void>();
let next = 0;

function set(value: readonly Toast[]): void {
  toasts = value;
  for (const listener of listeners) listener();
}

/** Says for a few seconds that something was done, or why not. */
export function toast(text: string, more: Omit<Toast, "id" | "text"> = {}): void {
  const id = next++;
  set([...toasts.slice(-3), { id, text, ...more }]);
  setTimeout(() => {
    set(toasts.filter((each) => each.id !== id));
  }, more.isError === true ? 12_000 : 6_000);
}

export const toastError = (error: unknown) => {
  toast(error instanceof Error ? error.message : String(error), { isError: true });
};

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((each) => (
        <div key={each.id} className="toast">
          <span className="grow" style={each.isError === true ? { color: "var(--failed)" } : undefined}>
            {each.text}
          </span>
          {each.href === undefined ? null : (
            <Link href={each.href} className="button small">
              {each.link ?? "Open"}
            </Link>
          )}
        </div>
      ))}
    </div>
  );
}
