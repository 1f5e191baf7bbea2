// Finds assets, partitions of the one that is named, runs and commands. Asks the server for a few that match, never for all.
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { useLocation } from "wouter";
import { answer, api } from "../api/client";
import { summaryQuery } from "../api/queries";
import { PLACES } from "../app";
import { bucketText } from "../assets/bucketText";
import { materializeStore } from "../materialize/open";
import { Dialog } from "../parts/Dialog";
import { assetHref, dataHref, dotted, runHref } from "../parts/format";
import { Mark, toneOf } from "../parts/State";
import { closer, matching, namedPartition, RANGES } from "./partitions";
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
  const named = namedPartition(asked);
  const assets = useQuery({
    queryKey: ["assets", "palette", asked],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/assets", { params: { query: { limit: 8, ...(asked === "" ? {} : { contains: (named?.asset ?? asked).replace("/", ".") }) } }, signal })),
    retry: false,
  });
  // The asset that is named, or the only one that it can mean.
  const about = named === undefined ? undefined : (assets.data?.items.find((asset) => dotted(asset.asset_key) === named.asset) ?? (assets.data?.items.length === 1 ? assets.data.items[0] : undefined));
  const key = about?.partitioned === true ? about.asset_key : undefined;
  const whole = useQuery({ ...summaryQuery(key ?? "", RANGES, 0, undefined), enabled: key !== undefined });
  const near = named === undefined || whole.data === undefined || key === undefined || whole.isPlaceholderData ? undefined : closer(whole.data, named.partition);
  const part = useQuery({ ...summaryQuery(key ?? "", RANGES, near?.from ?? 0, near?.count ?? 1), enabled: near !== undefined });
  const summary = near === undefined ? (whole.isPlaceholderData ? undefined : whole.data) : part.isPlaceholderData ? undefined : part.data;
  const partitions = key === undefined || named === undefined || summary === undefined ? [] : matching(summary, named.partition);
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
    ...partitions.map((bucket) => ({ id: bucket.first, text: `${dotted(key ?? "")}[${bucket.first}]`, kind: bucketText(bucket).slice(bucket.first.length + 2), run: go(dataHref(key ?? "", bucket.first)) })),
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
        placeholder="Search assets, runs and commands; raw.flights 2026-01 for partitions"
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
