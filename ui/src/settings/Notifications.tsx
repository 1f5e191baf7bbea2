// Who is told of what: notification rules, whether they work, and what they have told.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { notificationHistoryQuery, notificationsQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { count, runHref, shortRun } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { State } from "../parts/State";
import { Ago } from "../parts/Time";
import { toast, toastError } from "../parts/toasts";

type Rule = Schemas["NotificationRule"];

const words = (text: string) => text.toLowerCase().replaceAll("_", " ");

/** A destination in a few words, without its secrets. */
export function destinationText(to: unknown): string {
  const { type, url, channel, to: addresses } = to as { type?: string; url?: unknown; channel?: unknown; to?: unknown };
  const place = [url, channel, addresses].find((each) => typeof each === "string" || (Array.isArray(each) && each.length > 0));
  return `${type ?? "somebody"}${place === undefined ? "" : ` ${Array.isArray(place) ? place.join(", ") : String(place as string)}`}`;
}

export function Notifications() {
  const query = useInfiniteQuery(notificationsQuery);
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const [chosen, setChosen] = useState<string | undefined>();
  return (
    <div className="stack">
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={4} /> : null}
      {query.isSuccess && items.length === 0 ? (
        <Empty title="Nobody is told of anything">
          <p>A notification tells people or programs when something needs them. Declare one beside your assets:</p>
          <pre>{'servo.notification("on-call", when=["run_failed", "freshness_missed"],\n                   to=servo.slack(servo.SecretRef.env("SLACK_URL")))'}</pre>
        </Empty>
      ) : null}
      {items.length === 0 ? null : (
        <section className="panel scroll" tabIndex={0} role="group" aria-label="Notification rules">
          <table className="table">
            <thead>
              <tr>
                <th>On</th>
                <th>Name</th>
                <th>State</th>
                <th>When</th>
                <th>To</th>
                <th>Last told</th>
                <th>
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((rule) => (
                <RuleRow
                  key={rule.rule_id}
                  rule={rule}
                  isChosen={chosen === rule.name}
                  onChoose={() => {
                    setChosen(chosen === rule.name ? undefined : rule.name);
                  }}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {query.hasNextPage ? (
        <div>
          <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more
          </button>
        </div>
      ) : null}
      {chosen === undefined ? null : <Told rule={chosen} />}
    </div>
  );
}

function RuleRow({ rule, isChosen, onChoose }: { rule: Rule; isChosen: boolean; onChoose: () => void }) {
  const queries = useQueryClient();
  const isOn = rule.status !== "PAUSED";
  const request = () => ({ params: { path: { notification: rule.name }, header: once() }, body: { expected_state_version: rule.state_version } });
  const again = () => queries.invalidateQueries({ queryKey: ["notifications"] });
  const toggle = useMutation({
    mutationFn: () => answer(isOn ? api.POST("/api/v1/notifications/{notification}/pause", request()) : api.POST("/api/v1/notifications/{notification}/resume", request())),
    onSuccess: again,
    onError: toastError,
  });
  const test = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/notifications/{notification}/test", { ...request(), body: {} })),
    onSuccess: async () => {
      toast(`${rule.name} sends a test`);
      if (!isChosen) onChoose();
      await again();
    },
    onError: toastError,
  });
  return (
    <tr data-current={isChosen}>
      <td>
        <Act
          needs="automation.change"
          className="switch"
          role="switch"
          aria-checked={isOn}
          aria-label={`${rule.name} is on`}
          disabled={toggle.isPending}
          onClick={() => {
            toggle.mutate();
          }}
        />
      </td>
      <td>
        {rule.name}
        {rule.description == null ? null : <div className="muted clip" title={rule.description}>{rule.description}</div>}
      </td>
      <td>
        <State state={rule.status} />
        {rule.last_error == null ? null : (
          <div className="clip" style={{ color: "var(--failed)" }} title={rule.last_error}>
            {rule.last_error.split("\n")[0]}
          </div>
        )}
      </td>
      <td>
        {rule.when.map(words).join(", ")}
        {rule.selection == null ? null : <div className="mono muted">{rule.selection}</div>}
      </td>
      <td>{rule.to.map((to, index) => <div key={index} className="clip">{destinationText(to)}</div>)}</td>
      <td className="nowrap">
        <Ago at={rule.last_sent_at ?? undefined} />
      </td>
      <td className="nowrap right">
        <button type="button" className="button small" aria-expanded={isChosen} onClick={onChoose}>
          History
        </button>{" "}
        <Act
          needs="automation.change"
          className="button small"
          aria-label={`Send a test of ${rule.name}`}
          disabled={test.isPending}
          onClick={() => {
            test.mutate();
          }}
        >
          Send a test
        </Act>
      </td>
    </tr>
  );
}

const STATES: Record<string, string> = { SENT: "SUCCEEDED", SENDING: "RUNNING", PENDING: "QUEUED", FAILED: "FAILED", DROPPED: "SKIPPED" };

function Told({ rule }: { rule: string }) {
  const query = useQuery({ ...notificationHistoryQuery(rule), refetchInterval: 2000 });
  return (
    <Panel title={`What ${rule} has told`} label="History of the rule">
      <Shown query={query} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing yet" />
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Notifications">
              <table className="table">
                <thead>
                  <tr>
                    <th>When</th>
                    <th>State</th>
                    <th>About</th>
                    <th>By</th>
                    <th className="right">Tries</th>
                    <th>Why</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((each) => (
                    <tr key={each.notification_id}>
                      <td className="nowrap">
                        <Ago at={each.created_at} />
                      </td>
                      <td>
                        <State state={STATES[each.status] ?? "QUEUED"} word={words(each.status)} />
                      </td>
                      <td>
                        {words(each.trigger)} {each.asset == null ? "" : each.asset} {each.run_id == null ? null : <Link href={runHref(each.run_id)} className="mono">{shortRun(each.run_id)}</Link>}
                      </td>
                      <td>{each.channel}</td>
                      <td className="right">{count(each.attempts)}</td>
                      <td style={each.last_error == null ? undefined : { color: "var(--failed)" }}>{each.last_error ?? ""}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Shown>
    </Panel>
  );
}
