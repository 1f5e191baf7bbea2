// A dialog that does one thing: what it says, fields, why it failed, and a button that says what will happen.
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";
import { Field } from "./fields";
import { ProblemBox } from "./Panel";

interface Properties {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The button: what pressing it does. */
  action: string;
  onAct: () => void;
  /** The change itself: the button is busy while it is made. */
  change: { isPending: boolean; error: unknown };
  isDangerous?: boolean;
  disabled?: boolean;
  /** Why the viewer may not. */
  whyNot?: string | undefined;
  /** The button that does nothing. */
  close?: string;
  /** Other ways, left of the buttons. */
  others?: ReactNode;
}

export function ActionDialog({ title, onClose, children, action, onAct, change, isDangerous = false, disabled = false, whyNot, close = "Close", others }: Properties) {
  const isOff = disabled || whyNot !== undefined || change.isPending;
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isOff) onAct();
        }}
      >
        <div className="content">
          {children}
          {change.error === null ? null : <ProblemBox error={change.error} />}
        </div>
        <footer>
          {others}
          <button type="button" className="button" onClick={onClose}>
            {close}
          </button>
          <button type="submit" className={`button ${isDangerous ? "danger" : "primary"}`} title={whyNot} disabled={isOff} aria-busy={change.isPending}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Why somebody does something, kept with it in the audit. */
export function ReasonField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return <Field label="Reason, for the audit" value={value} onChange={onChange} />;
}
