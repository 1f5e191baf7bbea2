// One schedule: its ticks and what they did, what comes next, and a tick now.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { previewQuery, ticksQuery } from "../api/queries";
import { Dialog } from "../parts/Dialog";
import { exactly, runHref, shortRun } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";
import { useToggle } from "./useToggle";
import { Act } from "../parts/Act";

export default function SchedulePage({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["schedules", name],
    queryFn: ({ signal }) => answer(api.GET("/api/v1/orchestration/schedules/{schedule}", { params: { path: { schedule: name } }, signal })),
    retry: false,
  });
  return (
    <div className="page">
      <Shown query={query} rows={8}>
        {(schedule) => <Detail schedule={schedule} />}
      </Shown>
    </div>
  );
}

function Detail({ schedule }: { schedule: Schemas["Schedule"] }) {
  const ticks = useQuery(ticksQuery(schedule.name, 50));
  const preview = useQuery(previewQuery(schedule.name));
  const { isOn, toggle, isPending } = useToggle({ ...schedule, kind: "schedule" });
  const [triggers, setTriggers] = useState(false);
  return (
    <div className="stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>
          <Link href="/automation" className="crumb" style={{ fontWeight: 400 }}>
            Automation /{" "}
          </Link>
          {schedule.name}
        </h1>
        <State state={schedule.status} />
        <div className="actions">
          <Act needs="automation.operate" className="button" disabled={isPending} onClick={() => { toggle(); }}>
            {isOn ? "Pause" : "Resume"}
          </Act>
          <Act needs="runs.trigger"
           
            className="button primary"
            onClick={() => {
              setTriggers(true);
            }}
          >
            Tick now…
          </Act>
        </div>
      </div>
      {schedule.last_error == null ? null : (
        <p className="problem">
          <strong>The last tick failed</strong>
          <span>{schedule.last_error}</span>
        </p>
      )}
      <div className="columns">
        <Panel title="Ticks" label="Ticks">
          <Shown query={ticks} rows={6}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty title="No tick yet">
                  <p>Every tick is listed here, with the run it asked for or why it asked for none.</p>
                </Empty>
              ) : (
                <div className="scroll">
                  <table className="table">
                    <thead>
                      <tr>
                        <th>For</th>
                        <th>Result</th>
                        <th>Run</th>
                        <th>Why</th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map((tick) => (
                        <tr key={tick.tick_id}>
                          <td className="nowrap" title={exactly(tick.scheduled_for)}>
                            <Ago at={tick.scheduled_for} /> {tick.manual ? <span className="chip">by hand</span> : null}
                          </td>
                          <td>
                            <State state={tick.status} />
                          </td>
                          <td className="mono">{tick.runs?.map((run) => <Link key={run.run_id} href={runHref(run.run_id)}>{shortRun(run.run_id)}</Link>) ?? "–"}</td>
                          <td className="muted">{tick.reason ?? ""}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )
            }
          </Shown>
        </Panel>
        <div className="stack">
          <Panel title="Next ticks" label="Next ticks">
            <Shown query={preview} rows={3}>
              {(data) => (
                <ul className="attention">
                  {data.ticks.map((tick) => (
                    <li key={tick}>
                      <span className="grow">{exactly(tick).split("\n")[0]}</span>
                      <span className="muted">
                        <Ago at={tick} />
                      </span>
                    </li>
                  ))}
                </ul>
              )}
            </Shown>
          </Panel>
          <Panel title="Definition" label="Definition">
            <dl className="facts body">
              <dt>When</dt>
              <dd>
                <span className="mono">{schedule.cron}</span> {schedule.timezone}
              </dd>
              <dt>What</dt>
              <dd className="mono">{schedule.selection ?? schedule.function ?? "–"}</dd>
              <dt>If running</dt>
              <dd>{schedule.if_running}</dd>
              <dt>Catch-up</dt>
              <dd>
                {schedule.max_catchup_ticks} ticks within {schedule.catchup_window_minutes} min
              </dd>
              <dt>Defined by</dt>
              <dd>{schedule.origin}</dd>
            </dl>
          </Panel>
        </div>
      </div>
      {triggers ? (
        <TriggerDialog
          schedule={schedule}
          onClose={() => {
            setTriggers(false);
          }}
        />
      ) : null}
    </div>
  );
}

function TriggerDialog({ schedule, onClose }: { schedule: Schemas["Schedule"]; onClose: () => void }) {
  const [keys, setKeys] = useState("");
  const words = keys.split(/[\s;]+/).filter(Boolean);
  const trigger = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/v1/orchestration/schedules/{schedule}/trigger", {
          params: { path: { schedule: schedule.name }, header: once() },
          body: words.length === 0 ? {} : { partitions: { keys: words.filter((word) => !word.includes("..")), ranges: words.filter((word) => word.includes("..")) } },
        }),
      ),
    onSuccess: () => {
      toast(`${schedule.name} ticked`);
      onClose();
    },
  });
  return (
    <Dialog title={`Tick ${schedule.name} now`} onClose={onClose}>
      <div className="content">
        <p>
          It asks for a run of <code>{schedule.selection ?? schedule.function}</code>, as a tick at this moment would.
        </p>
        <label className="line">
          Partitions instead of the newest complete one
          <input
            className="field mono"
            placeholder="2013-01-15 2013-02-01..2013-02-28"
            value={keys}
            onChange={(event) => {
              setKeys(event.target.value);
            }}
          />
        </label>
        {trigger.error === null ? null : <ProblemBox error={trigger.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button primary"
          disabled={trigger.isPending}
          onClick={() => {
            trigger.mutate();
          }}
        >
          Tick now
        </button>
      </footer>
    </Dialog>
  );
}
