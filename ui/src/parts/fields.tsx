// Fields with their labels, and choices among a few.
import type { ReactNode } from "react";

interface FieldProperties {
  label: ReactNode;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string | undefined;
  isMono?: boolean;
  /** Lines, if it may be more than one. */
  rows?: number;
  /** What is wrong with the value. */
  problem?: string | undefined;
  /** Values that are offered. */
  offers?: readonly string[];
}

export function Field({ label, value, onChange, placeholder, isMono = false, rows, problem, offers }: FieldProperties) {
  const shared = { className: `field${isMono ? " mono" : ""}`, value, placeholder, spellCheck: !isMono, "aria-invalid": problem !== undefined };
  const list = offers === undefined ? undefined : `offers-${offers.join("-").replace(/[^\w]+/g, "-")}`;
  return (
    <label className="line">
      {label}
      {rows === undefined ? (
        <input
          {...shared}
          list={list}
          onChange={(event) => {
            onChange(event.target.value);
          }}
        />
      ) : (
        <textarea
          {...shared}
          rows={rows}
          onChange={(event) => {
            onChange(event.target.value);
          }}
        />
      )}
      {problem === undefined ? null : <span style={{ color: "var(--failed)" }}>{problem}</span>}
      {offers === undefined ? null : (
        <datalist id={list}>
          {offers.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </label>
  );
}

export type Choices = readonly (readonly [value: string, text: string])[];

/** One of a few, in a menu; its label is for readers. */
export function Choose({ label, value, choices, onChange, isSmall = false }: { label: string; value: string; choices: Choices; onChange: (value: string) => void; isSmall?: boolean }) {
  return (
    <select
      className={`field${isSmall ? " small" : ""}`}
      aria-label={label}
      value={value}
      onChange={(event) => {
        onChange(event.target.value);
      }}
    >
      {choices.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** One of a few, side by side. */
export function Segments({ label, value, choices, onChange, isDisabled }: { label: string; value: string; choices: Choices; onChange: (value: string) => void; isDisabled?: (value: string) => boolean }) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {choices.map(([each, text]) => (
        <button
          key={each}
          type="button"
          aria-pressed={value === each}
          disabled={isDisabled?.(each)}
          onClick={() => {
            onChange(each);
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

export function Check({ checked, onChange, children }: { checked: boolean; onChange: (checked: boolean) => void; children: ReactNode }) {
  return (
    <label className="row" style={{ fontSize: 13 }}>
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => {
          onChange(event.target.checked);
        }}
      />
      {children}
    </label>
  );
}

/** Parts of a page, of which one is shown; `href` is where each of them is. */
export function Tabs({ label, value, choices, href, onChange }: { label: string; value: string; choices: Choices; href: (value: string) => string; onChange: (value: string) => void }) {
  return (
    <nav className="tabs" aria-label={label}>
      {choices.map(([each, text]) => (
        <a
          key={each}
          href={href(each)}
          aria-current={value === each ? "page" : undefined}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            onChange(each);
          }}
        >
          {text}
        </a>
      ))}
    </nav>
  );
}
