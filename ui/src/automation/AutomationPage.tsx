// Schedules in one list: whether they are on, when they tick, what their last ticks did.
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { schedulesQuery } from "../api/queries";
import { Empty, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { Ticks } from "./ticks";
import { useToggle } from "./useToggle";

export default function AutomationPage() {
  const query = useQuery(schedulesQuery);
  return (
    <div className="page stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>Automation</h1>
      </div>
      <Shown query={query} rows={6}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No schedules">
              <p>A schedule asks for runs at given times. Declare one beside your assets:</p>
              <pre>{'morning = servo.schedule("morning", cron="0 6 * * *",\n                         timezone="Europe/Amsterdam", selection="analytics.*")'}</pre>
            </Empty>
          ) : (
            <section className="panel scroll">
              <table className="table">
                <thead>
                  <tr>
                    <th>On</th>
                    <th>Name</th>
                    <th>State</th>
                    <th>When</th>
                    <th>What</th>
                    <th>Next</th>
                    <th>Last ticks</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((schedule) => (
                    <Row key={schedule.schedule_id} schedule={schedule} />
                  ))}
                </tbody>
              </table>
            </section>
          )
        }
      </Shown>
    </div>
  );
}

function Row({ schedule }: { schedule: Schemas["Schedule"] }) {
  const { isOn, toggle, isPending } = useToggle(schedule);
  return (
    <tr>
      <td>
        <button type="button" className="switch" role="switch" aria-checked={isOn} aria-label={`${schedule.name} is on`} disabled={isPending} onClick={() => { toggle(); }} />
      </td>
      <td>
        <Link href={`/automation/schedules/${encodeURIComponent(schedule.name)}`}>{schedule.name}</Link>
        {schedule.description == null ? null : <div className="muted">{schedule.description}</div>}
      </td>
      <td>
        <State state={schedule.status} {...(schedule.last_error == null ? {} : { title: schedule.last_error })} />
        {schedule.last_error == null ? null : <div style={{ color: "var(--failed)" }}>{schedule.last_error}</div>}
      </td>
      <td className="nowrap">
        <span className="mono">{schedule.cron}</span> <span className="muted">{schedule.timezone}</span>
      </td>
      <td className="mono">{schedule.selection ?? schedule.function ?? ""}</td>
      <td>{isOn ? <Ago at={schedule.next_tick_at ?? undefined} /> : <span className="muted">paused</span>}</td>
      <td>
        <Ticks schedule={schedule.name} />
      </td>
    </tr>
  );
}
