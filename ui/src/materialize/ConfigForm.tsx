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

export function ConfigForm({ fields, onChange }: { fields: readonly ConfigField[]; onChange: (config: Record<string, unknown>) => void }) {
  const [texts, setTexts] = useState<Record<string, string>>({});
  const set = (name: string, text: string) => {
    const next = { ...texts, [name]: text };
    setTexts(next);
    const config: Record<string, unknown> = {};
    for (const field of fields) {
      const id = `${field.asset}:${field.name}`;
      const value = valueOf(field, next[id] ?? "");
      if (value !== undefined) config[id] = value;
    }
    onChange(config);
  };
  return (
    <fieldset style={{ border: 0, padding: 0, margin: 0, display: "grid", gap: 8 }}>
      <legend style={{ fontSize: 13, padding: 0 }}>Configuration</legend>
      {fields.map((field) => {
        const id = `${field.asset}:${field.name}`;
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
