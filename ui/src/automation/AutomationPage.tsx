// Schedules, sensors and conditions in one list: whether they are on, what they wait for, what they did last.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import type { Schemas } from "../api/client";
import { conditionPagesQuery, schedulePagesQuery, sensorPagesQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { Segments, type Choices } from "../parts/fields";
import { assetHref, chosen, dotted, plural, runHref, slashed } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { usePages } from "../parts/Table";
import { Ago } from "../parts/Time";
import { useRowKeys } from "../parts/useRowKeys";
import { Evaluations, Ticks } from "./ticks";
import { useToggle, type Automation } from "./useToggle";

const KINDS: Choices = [
  ["", "All"],
  ["schedule", "Schedules"],
  ["sensor", "Sensors"],
  ["condition", "Conditions"],
];

export const sensorHref = (name: string) => `/automation/sensors/${encodeURIComponent(name)}`;
export const scheduleHref = (name: string) => `/automation/schedules/${encodeURIComponent(name)}`;

export default function AutomationPage() {
  const [kind, setKind] = useParam("kind");
  const schedules = useInfiniteQuery(schedulePagesQuery);
  const sensors = useInfiniteQuery(sensorPagesQuery);
  const conditions = useInfiniteQuery(conditionPagesQuery);
  const ticking = usePages(schedules);
  const sensing = usePages(sensors);
  const reacting = usePages(conditions);
  const isWanted = (each: string) => kind === "" || kind === each;
  const wanted = [...(isWanted("schedule") ? [schedules] : []), ...(isWanted("sensor") ? [sensors] : []), ...(isWanted("condition") ? [conditions] : [])];
  const found = (isWanted("schedule") ? ticking.items.length : 0) + (isWanted("sensor") ? sensing.items.length : 0) + (isWanted("condition") ? reacting.items.length : 0);
  const box = useRef<HTMLElement>(null);
  useRowKeys(box, found);
  return (
    <div className="page stack">
      <PageHead title="Automation">
        <Segments label="Which" value={kind} choices={KINDS} onChange={setKind} />
      </PageHead>
      {wanted.map((query, index) => (query.error === null ? null : <ProblemBox key={index} error={query.error} again={() => void query.refetch()} />))}
      {found === 0 && wanted.some((query) => query.isPending) ? <Skeleton rows={6} /> : null}
      {found === 0 && wanted.every((query) => query.isSuccess) ? <Nothing kind={kind} /> : null}
      {found === 0 ? null : (
        <section ref={box} className="panel scroll" tabIndex={0} role="group" aria-label="Schedules, sensors and conditions">
          <table className="table">
            <thead>
              <tr>
                <th>On</th>
                <th>Name</th>
                <th>State</th>
                <th className="hide-small">When</th>
                <th className="hide-small">What</th>
                <th>Next</th>
                <th title="Ticks and evaluations, the newest at the right">Last</th>
              </tr>
            </thead>
            <tbody>
              {isWanted("schedule") ? ticking.items.map((schedule) => <ScheduleRow key={schedule.schedule_id} schedule={schedule} />) : null}
              {isWanted("sensor") ? sensing.items.map((sensor) => <SensorRow key={sensor.sensor_id} sensor={sensor} />) : null}
              {isWanted("condition") ? reacting.items.map((condition) => <ConditionRow key={condition.asset} condition={condition} />) : null}
            </tbody>
          </table>
        </section>
      )}
      <div className="row">
        {(
          [
            ["schedule", schedules, ticking],
            ["sensor", sensors, sensing],
            ["condition", conditions, reacting],
          ] as const
        ).map(([each, query, { more }]) =>
          query.hasNextPage && isWanted(each) ? (
            <button key={each} type="button" className="button" disabled={query.isFetchingNextPage} onClick={more}>
              More {each}s
            </button>
          ) : null,
        )}
      </div>
    </div>
  );
}

/** What would be here, and the lines that bring it. */
function Nothing({ kind }: { kind: string }) {
  const isWanted = (each: string) => kind === "" || kind === each;
  return (
    <Empty title={kind === "" ? "Nothing is automated" : `No ${kind}s`}>
      {isWanted("schedule") ? (
        <>
          <p>A schedule asks for runs at given times. Declare one beside your assets:</p>
          <pre>{'servo.schedule("morning", cron="0 6 * * *",\n               timezone="Europe/Amsterdam", selection="analytics.*")'}</pre>
        </>
      ) : null}
      {isWanted("sensor") ? (
        <>
          <p>A sensor asks for runs because of something that it sees or is told:</p>
          <pre>{'@servo.sensor(interval="1m", selection="raw.orders")\ndef new_files(ctx):\n    …'}</pre>
        </>
      ) : null}
      {isWanted("condition") ? (
        <>
          <p>A condition has an asset made by itself, when what it reads has changed:</p>
          <pre>@servo.asset(automation=servo.eager())</pre>
        </>
      ) : null}
    </Empty>
  );
}

interface RowProps {
  automation: Automation;
  href: string;
  description: string | null | undefined;
  error: string | null | undefined;
  when: ReactNode;
  what: string;
  next: ReactNode;
  marks: ReactNode;
}

function Row({ automation, href, description, error, when, what, next, marks }: RowProps) {
  const { isOn, toggle, isPending } = useToggle(automation);
  const [, navigate] = useLocation();
  const name = automation.kind === "condition" ? dotted(automation.name) : automation.name;
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    // Where it stands among all rows, whatever they are.
    if (row.current !== null) row.current.dataset["index"] = String(row.current.sectionRowIndex);
  });
  return (
    <tr
      ref={row}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) navigate(href);
      }}
    >
      <td>
        <Act needs="automation.operate" className="switch" role="switch" aria-checked={isOn} aria-label={`${name} is on`} disabled={isPending} onClick={() => { toggle(); }} />
      </td>
      <td>
        <Link href={href} className={automation.kind === "condition" ? "mono" : undefined}>
          {name}
        </Link>{" "}
        <span className="chip">{automation.kind}</span>
        {error == null ? (
          description == null ? null : <div className="muted clip wide hide-small" title={description}>{description}</div>
        ) : (
          <div className="clip wide" style={{ color: "var(--failed)" }} title={error}>
            {error.split("\n")[0]}
          </div>
        )}
      </td>
      <td>
        <State state={automation.status} {...(error == null ? {} : { title: error })} />
      </td>
      <td className="nowrap hide-small">{when}</td>
      <td className="mono hide-small">
        <div className="clip" title={what}>
          {what}
        </div>
      </td>
      <td className="nowrap">{isOn ? next : <span className="muted">paused</span>}</td>
      <td className="nowrap">{marks}</td>
    </tr>
  );
}

function ConditionRow({ condition }: { condition: Schemas["Condition"] }) {
  const asset = slashed(condition.asset);
  return (
    <Row
      automation={{ kind: "condition", name: asset, status: condition.status, state_version: condition.state_version }}
      href={`${assetHref(asset)}?tab=automation`}
      description={undefined}
      error={condition.last_error}
      when={
        <div className="mono clip" title={condition.condition}>
          {condition.condition}
        </div>
      }
      what={dotted(asset)}
      next={<span className="muted">when it is so</span>}
      marks={
        condition.last_requested_at == null ? (
          <span className="muted">none yet</span>
        ) : condition.last_run_id == null ? (
          <Ago at={condition.last_requested_at} />
        ) : (
          <Link href={runHref(condition.last_run_id)}>
            <Ago at={condition.last_requested_at} />
          </Link>
        )
      }
    />
  );
}

function ScheduleRow({ schedule }: { schedule: Schemas["Schedule"] }) {
  return (
    <Row
      automation={{ ...schedule, kind: "schedule" }}
      href={scheduleHref(schedule.name)}
      description={schedule.description}
      error={schedule.last_error}
      when={
        <>
          <span className="mono">{schedule.cron}</span> <span className="muted">{schedule.timezone}</span>
        </>
      }
      what={schedule.selection ?? schedule.function ?? ""}
      next={<Ago at={schedule.next_tick_at ?? undefined} />}
      marks={<Ticks schedule={schedule.name} />}
    />
  );
}

/** What makes a sensor look. */
export function watchText(sensor: Schemas["Sensor"]): string {
  if (sensor.kind === "poll") return sensor.interval_ms == null ? "polls" : `every ${chosen(sensor.interval_ms)}`;
  if (sensor.kind === "asset") return `${sensor.all_of === true ? "when all of" : "after"} ${(sensor.on ?? []).join(", ")}${sensor.all_of === true ? " are made" : ""}`;
  if (sensor.kind === "run") return `when a run is ${(sensor.run_status ?? []).map((state) => state.toLowerCase().replace("_", " ")).join(" or ")}`;
  return "when it is sent a message";
}

function SensorRow({ sensor }: { sensor: Schemas["Sensor"] }) {
  const waiting = sensor.messages_waiting ?? 0;
  return (
    <Row
      automation={{ ...sensor, kind: "sensor" }}
      href={sensorHref(sensor.name)}
      description={sensor.description}
      error={sensor.last_error}
      when={<div className="clip" title={watchText(sensor)}>{watchText(sensor)}</div>}
      what={sensor.selection ?? sensor.function ?? ""}
      next={sensor.evaluating === true ? "evaluating" : sensor.kind === "poll" ? <Ago at={sensor.next_evaluation_at ?? undefined} /> : waiting > 0 ? plural(waiting, "message") : <span className="muted">waits</span>}
      marks={<Evaluations sensor={sensor.name} />}
    />
  );
}
