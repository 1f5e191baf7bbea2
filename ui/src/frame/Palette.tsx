// Finds assets, runs and commands. Asks the server for a few that match, never for all.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { useLocation } from "wouter";
import { answer, api } from "../api/client";
import { PLACES } from "../app";
import { materializeStore } from "../materialize/open";
import { Dialog } from "../parts/Dialog";
import { assetHref, dotted, runHref } from "../parts/format";
import { Mark, toneOf } from "../parts/State";
import { chooseTheme } from "../theme/theme";

interface Entry {
  id: string;
  text: string;
  kind: string;
  mark?: string;
  run: () => void;
}

export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [, navigate] = useLocation();
  const asked = useDeferredValue(text.trim());
  const assets = useQuery({
    queryKey: ["assets", "palette", asked],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { limit: 8, ...(asked === "" ? {} : { contains: asked.replace("/", ".") }) } }, signal })),
    retry: false,
  });
  const isRun = asked.startsWith("run_");
  const runs = useQuery({
    queryKey: ["runs", "palette", isRun ? asked : ""],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/runs", { params: { query: { limit: 5, ...(isRun ? { id_prefix: asked } : {}) } }, signal })),
    retry: false,
  });
  const go = (href: string) => () => {
    onClose();
    navigate(href);
  };
  const commands: Entry[] = [
    ...PLACES.map((place) => ({ id: place.href, text: `Go to ${place.name.toLowerCase()}`, kind: `g ${place.key}`, run: go(place.href) })),
    {
      id: "materialize",
      text: "Materialize…",
      kind: "m",
      run: () => {
        onClose();
        materializeStore.open({ selection: "" });
      },
    },
    ...(["light", "dark", "system"] as const).map((theme) => ({
      id: theme,
      text: `Theme: ${theme === "system" ? "as the system has it" : theme}`,
      kind: "theme",
      run: () => {
        chooseTheme(theme);
        onClose();
      },
    })),
    { id: "keys", text: "Show keys", kind: "?", run: onKeys },
  ];
  const needle = asked.toLowerCase();
  const entries: Entry[] = [
    ...(isRun || assets.data === undefined ? [] : assets.data.items.map((asset) => ({ id: asset.asset_key, text: dotted(asset.asset_key), kind: "asset", run: go(assetHref(asset.asset_key)) }))),
    ...(needle === "" || isRun ? (runs.data?.items ?? []).map((run) => ({ id: run.run_id, text: `${run.run_id}  ${run.selection ?? ""}`, kind: "run", mark: run.state, run: go(runHref(run.run_id)) })) : []),
    ...commands.filter((command) => needle === "" || command.text.toLowerCase().includes(needle)),
  ];
  const at = Math.min(chosen, entries.length - 1);
  return (
    <Dialog label="Search or jump to" className="palette" onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries[at] === undefined ? undefined : `palette-${String(at)}`}
        aria-label="Search assets, runs and commands"
        placeholder="Search assets, runs and commands"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setChosen(Math.min(entries.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1))));
          } else if (event.key === "Enter") {
            event.preventDefault();
            entries[at]?.run();
          }
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Found" tabIndex={-1}>
        {entries.map((entry, index) => (
          <li
            key={`${entry.kind} ${entry.id}`}
            id={`palette-${String(index)}`}
            role="option"
            aria-selected={index === at}
            onMouseEnter={() => {
              setChosen(index);
            }}
            onClick={entry.run}
          >
            {entry.mark === undefined ? null : <Mark tone={toneOf(entry.mark)} />}
            <span className="grow ellipsis">{entry.text}</span>
            <span className="muted">{entry.kind}</span>
          </li>
        ))}
        {entries.length === 0 ? <li className="muted">Nothing is called that</li> : null}
      </ul>
    </Dialog>
  );
}
