// A form from the configuration that assets declare. What is left alone keeps its default.
import { useState } from "react";

export interface ConfigField {
  asset: string;
  name: string;
  type: string;
  required?: boolean;
  /** JSON as text. */
  default?: string;
  description?: string;
}

/** The value that a text means for a type, or none if it is left alone. */
export function valueOf(field: ConfigField, text: string): unknown {
  if (text === "") return undefined;
  const type = field.type.replace("builtins.", "");
  if (/^(int|float)\b/.test(type)) return Number.isNaN(Number(text)) ? text : Number(text);
  if (/^bool\b/.test(type)) return text === "true";
  if (/^str\b/.test(type)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The text that stands for a value. */
export const textOf = (value: unknown): string => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

const idOf = (field: ConfigField) => `${field.asset}:${field.name}`;

/** The configuration that texts of fields mean. What no field is about stays as it was given, since it is for assets that are not shown. */
export function configOf(fields: readonly ConfigField[], texts: Readonly<Record<string, string>>, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) if (!fields.some((field) => idOf(field) === name || field.name === name)) config[name] = value;
  for (const field of fields) {
    const value = valueOf(field, texts[idOf(field)] ?? textOf(given[idOf(field)] ?? given[field.name]));
    if (value !== undefined) config[idOf(field)] = value;
  }
  return config;
}

/** `given` is where it begins, as that of an earlier run. */
export function ConfigForm({ fields, given, onChange }: { fields: readonly ConfigField[]; given: Readonly<Record<string, unknown>>; onChange: (config: Record<string, unknown>) => void }) {
  const [changed, setChanged] = useState<Record<string, string>>({});
  const texts: Record<string, string> = Object.fromEntries(fields.map((field) => [idOf(field), changed[idOf(field)] ?? textOf(given[idOf(field)] ?? given[field.name])]));
  const set = (name: string, text: string) => {
    const next = { ...changed, [name]: text };
    setChanged(next);
    onChange(configOf(fields, next, given));
  };
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0, display: "grid", gap: 8 }}>
      <legend style={{ fontSize: 13, padding: 0 }}>Configuration</legend>
      {fields.map((field) => {
        const id = idOf(field);
        return (
          <label key={id} className="line" style={{ gridTemplateColumns: "minmax(0, 1fr) minmax(0, 1fr)", alignItems: "center" }}>
            <span>
              <span className="mono">{id}</span> <span className="muted">{field.type}</span>
              {field.description === undefined ? null : <span className="muted"> {field.description}</span>}
            </span>
            {/^(builtins\.)?bool\b/.test(field.type) ? (
              <select
                className="field"
                value={texts[id] ?? ""}
                onChange={(event) => {
                  set(id, event.target.value);
                }}
              >
                <option value="">{field.default === undefined ? "–" : `default: ${field.default}`}</option>
                <option value="true">true</option>
                <option value="false">false</option>
              </select>
            ) : (
              <input
                className="field mono"
                required={field.required === true && field.default === undefined}
                value={texts[id] ?? ""}
                placeholder={field.default === undefined ? (field.required === true ? "required" : "") : `default: ${field.default}`}
                onChange={(event) => {
                  set(id, event.target.value);
                }}
              />
            )}
          </label>
        );
      })}
    </fieldset>
  );
}
