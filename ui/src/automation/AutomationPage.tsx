// Schedules and sensors in one list: whether they are on, what they wait for, what they did last.
import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { schedulePagesQuery, sensorPagesQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { duration, plural } from "../parts/format";
import { Empty, ProblemBox, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { Evaluations, Ticks } from "./ticks";
import { useToggle, type Automation } from "./useToggle";

const KINDS: [string, string][] = [
  ["", "All"],
  ["schedule", "Schedules"],
  ["sensor", "Sensors"],
];

export const sensorHref = (name: string) => `/automation/sensors/${encodeURIComponent(name)}`;
export const scheduleHref = (name: string) => `/automation/schedules/${encodeURIComponent(name)}`;

export default function AutomationPage() {
  const [kind, setKind] = useParam("kind");
  const schedules = useInfiniteQuery(schedulePagesQuery);
  const sensors = useInfiniteQuery(sensorPagesQuery);
  const wanted = [...(kind === "sensor" ? [] : [schedules]), ...(kind === "schedule" ? [] : [sensors])];
  const ticking = kind === "sensor" ? [] : (schedules.data?.pages.flatMap((page) => page.items) ?? []);
  const sensing = kind === "schedule" ? [] : (sensors.data?.pages.flatMap((page) => page.items) ?? []);
  const isEmpty = ticking.length + sensing.length === 0 && wanted.every((query) => query.isSuccess);
  return (
    <div className="page stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>Automation</h1>
        <div className="segments" role="group" aria-label="Which">
          {KINDS.map(([value, name]) => (
            <button
              key={value}
              type="button"
              aria-pressed={kind === value}
              onClick={() => {
                setKind(value);
              }}
            >
              {name}
            </button>
          ))}
        </div>
      </div>
      {wanted.map((query, index) => (query.error === null ? null : <ProblemBox key={index} error={query.error} again={() => void query.refetch()} />))}
      {wanted.some((query) => query.isPending) ? <Skeleton rows={6} /> : null}
      {isEmpty ? (
        <Empty title={kind === "sensor" ? "No sensors" : kind === "schedule" ? "No schedules" : "Nothing is automated"}>
          {kind === "sensor" ? null : (
            <>
              <p>A schedule asks for runs at given times. Declare one beside your assets:</p>
              <pre>{'servo.schedule("morning", cron="0 6 * * *",\n               timezone="Europe/Amsterdam", selection="analytics.*")'}</pre>
            </>
          )}
          {kind === "schedule" ? null : (
            <>
              <p>A sensor asks for runs because of something that it sees or is told:</p>
              <pre>{'@servo.sensor(interval="1m", selection="raw.orders")\ndef new_files(ctx):\n    …'}</pre>
            </>
          )}
        </Empty>
      ) : null}
      {ticking.length + sensing.length === 0 ? null : (
        <section className="panel scroll" tabIndex={0} role="group" aria-label="Schedules and sensors">
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
              {ticking.map((schedule) => (
                <ScheduleRow key={schedule.schedule_id} schedule={schedule} />
              ))}
              {sensing.map((sensor) => (
                <SensorRow key={sensor.sensor_id} sensor={sensor} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      <div className="row">
        {schedules.hasNextPage && kind !== "sensor" ? (
          <button type="button" className="button" disabled={schedules.isFetchingNextPage} onClick={() => void schedules.fetchNextPage()}>
            More schedules
          </button>
        ) : null}
        {sensors.hasNextPage && kind !== "schedule" ? (
          <button type="button" className="button" disabled={sensors.isFetchingNextPage} onClick={() => void sensors.fetchNextPage()}>
            More sensors
          </button>
        ) : null}
      </div>
    </div>
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
  return (
    <tr>
      <td>
        <Act needs="automation.operate" className="switch" role="switch" aria-checked={isOn} aria-label={`${automation.name} is on`} disabled={isPending} onClick={() => { toggle(); }} />
      </td>
      <td>
        <Link href={href}>{automation.name}</Link> <span className="chip">{automation.kind}</span>
        {description == null ? null : <div className="muted clip hide-small" title={description}>{description}</div>}
      </td>
      <td>
        <State state={automation.status} {...(error == null ? {} : { title: error })} />
        {error == null ? null : (
          <div className="clip" style={{ color: "var(--failed)" }} title={error}>
            {error.split("\n")[0]}
          </div>
        )}
      </td>
      <td className="nowrap hide-small">{when}</td>
      <td className="mono clip hide-small" title={what}>
        {what}
      </td>
      <td className="nowrap">{isOn ? next : <span className="muted">paused</span>}</td>
      <td className="nowrap">{marks}</td>
    </tr>
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
  if (sensor.kind === "poll") return sensor.interval_ms == null ? "polls" : `every ${duration(sensor.interval_ms)}`;
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
      when={<span className="clip">{watchText(sensor)}</span>}
      what={sensor.selection ?? sensor.function ?? ""}
      next={sensor.evaluating === true ? "evaluating" : sensor.kind === "poll" ? <Ago at={sensor.next_evaluation_at ?? undefined} /> : waiting > 0 ? plural(waiting, "message") : <span className="muted">waits</span>}
      marks={<Evaluations sensor={sensor.name} />}
    />
  );
}
