// Which partitions: the newest, those that lack something, or these: from a calendar, values of dimensions, or as text.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { assetQuery, partitionsQuery } from "../api/queries";
import { Choose, Field } from "../parts/fields";
import { count, dotted, plural } from "../parts/format";
import { Mark, toneOf } from "../parts/State";
import { usePages } from "../parts/Table";
import { Calendar } from "./Calendar";
import type { Choice, Only } from "./choice";
import { dateIn, dayBeside, dimensionsOf, textOf, type Dimension, type Picked } from "./dimensions";

/** Values of a dimension that are offered at once. */
const MOST_VALUES = 60;

export function PartitionPicker({ asset, choice, onChange }: { asset: Schemas["Asset"]; choice: Choice; onChange: (choice: Choice) => void }) {
  const { data } = useQuery(assetQuery(asset.asset_key));
  const { total, materialized, last_attempt_failed, never_succeeded, expired } = asset.partitions;
  const never = Math.max(0, total - materialized - last_attempt_failed - expired);
  const stale = (asset.stale?.total ?? 0) - (asset.stale?.never_made ?? 0);
  const [first, last] = [data?.first_partition ?? undefined, data?.last_partition ?? undefined];
  const options: [Choice["kind"], string, string][] = [
    ["latest", "The newest", last ?? ""],
    ["missing", "Never made", count(never)],
    ["failed", "Failed", count(last_attempt_failed + never_succeeded)],
    ["stale", "Stale", stale > 0 ? count(stale) : ""],
    ["these", "These", ""],
  ];
  return (
    <fieldset className="bare stack">
      <legend>
        Partitions <span className="muted">({plural(total, "exists", "exist")} of {dotted(asset.asset_key)})</span>
      </legend>
      <div className="row wrap options">
        {options.map(([kind, name, more]) => (
          <label key={kind} className="row">
            <input
              type="radio"
              name="partitions"
              checked={choice.kind === kind}
              onChange={() => {
                onChange({ ...choice, kind, text: choice.text === "" && kind === "these" && last !== undefined ? last : choice.text });
              }}
            />
            {name} <span className="muted">{more}</span>
          </label>
        ))}
      </div>
      {choice.kind === "these" ? <These asset={asset} choice={choice} first={first} last={last} onChange={onChange} /> : null}
    </fieldset>
  );
}

const ONLY: readonly (readonly [string, string])[] = [
  ["", "All of them"],
  ["missing", "Only never made"],
  ["failed", "Only failed"],
  ["stale", "Only stale"],
];

interface TheseProperties {
  asset: Schemas["Asset"];
  choice: Choice;
  first: string | undefined;
  last: string | undefined;
  onChange: (choice: Choice) => void;
}

function These({ asset, choice, first, last, onChange }: TheseProperties) {
  const dimensions = dimensionsOf(asset.partitioning);
  const time = dimensions.find((each) => each.isTime);
  const others = dimensions.filter((each) => each !== time);
  // A range that was brushed or typed is where the calendar begins.
  const [picked, setPicked] = useState<Picked>(() => {
    const ends = choice.text.split("\n")[0]?.split("..") ?? [];
    const [from, to] = [dateIn(ends[0]) ?? "", dateIn(ends[1] ?? ends[0]) ?? ""];
    return { from: time === undefined ? "" : from, to: time === undefined ? "" : to, values: {} };
  });
  const pick = (change: Partial<Picked>) => {
    const next = { ...picked, ...change };
    setPicked(next);
    onChange({ ...choice, text: textOf(dimensions, next) });
  };
  const [low, high] = [dateIn(first), dateIn(last)];
  const hasDays = time !== undefined && (time.kind === "daily" || time.kind === "hourly") && low !== undefined && high !== undefined && low.length === 10;
  return (
    <div className="these">
      {hasDays ? (
        <div className="stack">
          <Calendar asset={asset.asset_key} perDay={time.kind === "hourly" ? 24 : 1} first={low} last={high} from={picked.from} to={picked.to} onChange={(from, to) => { pick({ from, to }); }} />
          <div className="row wrap">
            {([["Last 7 days", 7], ["Last 30 days", 30]] as const).map(([name, days]) => (
              <button key={name} type="button" className="button small" onClick={() => { pick({ from: later(dayBeside(high, 1 - days), low), to: high }); }}>
                {name}
              </button>
            ))}
            <button type="button" className="button small" onClick={() => { pick({ from: low, to: high }); }}>
              All
            </button>
          </div>
        </div>
      ) : null}
      <div className="stack">
        {time !== undefined ? (
          <div className="row wrap">
            <Ends label="From" kind={time.kind} value={picked.from} onChange={(from) => { pick({ from, to: picked.to === "" || picked.to < from ? from : picked.to }); }} />
            <Ends label="To" kind={time.kind} value={picked.to} onChange={(to) => { pick({ to, from: picked.from === "" ? to : picked.from }); }} />
          </div>
        ) : null}
        {others.map((dimension) => (
          <Values key={dimension.name} asset={asset.asset_key} dimension={dimension} isOnly={dimensions.length === 1} chosen={picked.values[dimension.name] ?? []} onChange={(chosen) => { pick({ values: { ...picked.values, [dimension.name]: chosen } }); }} />
        ))}
        <label className="line">
          Keys and ranges of partitions
          <textarea
            className="field mono"
            rows={3}
            value={choice.text}
            spellCheck={false}
            placeholder={first === undefined ? "2013-01-01..2013-01-31" : `${first}..${last ?? first}`}
            onChange={(event) => {
              const text = event.target.value;
              onChange({ ...choice, text });
              const ends = text.trim().split("..");
              const [from, to] = [dateIn(ends[0]), dateIn(ends[1] ?? ends[0])];
              if (time !== undefined && !text.trim().includes("\n") && from?.length === 10 && to?.length === 10) setPicked({ ...picked, from, to });
            }}
          />
        </label>
        <label className="row wrap">
          Of these
          <Choose label="Which of these" isSmall value={choice.only ?? ""} choices={ONLY} onChange={(only) => { onChange({ ...choice, only: only === "" ? undefined : (only as Only) }); }} />
        </label>
      </div>
    </div>
  );
}

const later = (a: string, b: string) => (a > b ? a : b);

/** One end of a range of time, as precise as the partitions are. */
function Ends({ label, kind, value, onChange }: { label: string; kind: string; value: string; onChange: (value: string) => void }) {
  return (
    <label className="row">
      {label}
      <input
        type={kind === "monthly" ? "month" : "date"}
        className="field small"
        value={kind === "monthly" ? value.slice(0, 7) : value.length === 7 ? `${value}-01` : value}
        onChange={(event) => {
          if (event.target.value !== "") onChange(event.target.value);
        }}
      />
    </label>
  );
}

interface ValuesProperties {
  asset: string;
  dimension: Dimension;
  isOnly: boolean;
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

/** Values of a dimension that is not of time: those that the code lists, or the partitions themselves. */
function Values({ asset, dimension, isOnly, chosen, onChange }: ValuesProperties) {
  const [text, setText] = useState("");
  const asks = isOnly;
  const query = useInfiniteQuery({ ...partitionsQuery(asset, ""), enabled: asks });
  const { items } = usePages(query);
  const states = new Map(items.map((item) => [item.partition ?? "", item.status]));
  const known = dimension.keys.length > 0 ? dimension.keys : asks ? items.map((item) => item.partition ?? "") : [];
  const matching = known.filter((key) => key.toLowerCase().includes(text.toLowerCase()));
  const name = dimension.name === "" ? "Values" : dimension.name;
  if (known.length === 0 && !asks)
    return <Field label={`Values of ${name}, separated by commas; none for all`} isMono value={chosen.join(", ")} onChange={(value) => { onChange(value.split(",").map((each) => each.trim()).filter(Boolean)); }} />;
  return (
    <fieldset className="bare stack values">
      <legend>
        {name} <span className="muted">{chosen.length === 0 ? (isOnly ? "none chosen" : `all ${count(known.length)}`) : `${count(chosen.length)} of ${count(known.length)}`}</span>
      </legend>
      {known.length > 12 ? <input className="field small" aria-label={`Find ${name}`} placeholder="find" value={text} onChange={(event) => { setText(event.target.value); }} /> : null}
      <div className="row wrap options">
        {matching.slice(0, MOST_VALUES).map((key) => {
          const state = states.get(key);
          return (
            <label key={key} className="row">
              <input
                type="checkbox"
                checked={chosen.includes(key)}
                onChange={(event) => {
                  onChange(event.target.checked ? [...chosen, key] : chosen.filter((each) => each !== key));
                }}
              />
              {state === undefined ? null : <Mark tone={toneOf(state)} label={state.toLowerCase().replaceAll("_", " ")} />}
              <span className="mono">{key}</span>
            </label>
          );
        })}
        {matching.length > MOST_VALUES ? <span className="muted">and {count(matching.length - MOST_VALUES)} more: find them, or type them below</span> : null}
        {query.hasNextPage && asks && dimension.keys.length === 0 ? (
          <button type="button" className="button small" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            More
          </button>
        ) : null}
      </div>
    </fieldset>
  );
}
