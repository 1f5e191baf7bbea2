// Who is told of what: notification rules, whether they work, and what they have told.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { notificationHistoryQuery, notificationsQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { count, runHref, shortRun } from "../parts/format";
import { Empty, Panel, Shown } from "../parts/Panel";
import { State } from "../parts/State";
import { ACTIONS, Paged, Table, type Column } from "../parts/Table";
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
  const [chosen, setChosen] = useState<string | undefined>();
  const columns: Column<Rule>[] = [
    { head: "On", cell: (rule) => <Toggle rule={rule} /> },
    {
      head: "Name",
      cell: (rule) => (
        <>
          {rule.name}
          {rule.description == null ? null : <div className="muted clip" title={rule.description}>{rule.description}</div>}
        </>
      ),
    },
    {
      head: "State",
      cell: (rule) => (
        <>
          <State state={rule.status} />
          {rule.last_error == null ? null : (
            <div className="clip" style={{ color: "var(--failed)" }} title={rule.last_error}>
              {rule.last_error.split("\n")[0]}
            </div>
          )}
        </>
      ),
    },
    {
      head: "When",
      cell: (rule) => (
        <>
          {rule.when.map(words).join(", ")}
          {rule.selection == null ? null : <div className="mono muted">{rule.selection}</div>}
        </>
      ),
    },
    { head: "To", cell: (rule) => rule.to.map((to, index) => <div key={index} className="clip">{destinationText(to)}</div>) },
    { head: "Last told", className: "nowrap", cell: (rule) => <Ago at={rule.last_sent_at ?? undefined} /> },
    {
      head: ACTIONS,
      className: "nowrap right",
      cell: (rule) => (
        <>
          <button
            type="button"
            className="button small"
            aria-expanded={chosen === rule.name}
            onClick={() => {
              setChosen(chosen === rule.name ? undefined : rule.name);
            }}
          >
            History
          </button>{" "}
          <SendTest
            rule={rule}
            onSent={() => {
              setChosen(rule.name);
            }}
          />
        </>
      ),
    },
  ];
  return (
    <div className="stack">
      <Paged
        query={query}
        rows={4}
        next="Show more"
        empty={
          <Empty title="Nobody is told of anything">
            <p>A notification tells people or programs when something needs them. Declare one beside your assets:</p>
            <pre>{'servo.notification("on-call", when=["run_failed", "freshness_missed"],\n                   to=servo.slack(servo.SecretRef.env("SLACK_URL")))'}</pre>
          </Empty>
        }
      >
        {(items) => (
          <section className="panel">
            <Table label="Notification rules" items={items} columns={columns} id={(rule) => rule.rule_id} isCurrent={(rule) => rule.name === chosen} />
          </section>
        )}
      </Paged>
      {chosen === undefined ? null : <Told rule={chosen} />}
    </div>
  );
}

function useRequest(rule: Rule) {
  const queries = useQueryClient();
  return {
    request: () => ({ params: { path: { notification: rule.name }, header: once() }, body: { expected_state_version: rule.state_version } }),
    again: () => queries.invalidateQueries({ queryKey: ["notifications"] }),
  };
}

function Toggle({ rule }: { rule: Rule }) {
  const { request, again } = useRequest(rule);
  const isOn = rule.status !== "PAUSED";
  const toggle = useMutation({
    mutationFn: () => answer(isOn ? api.POST("/api/v1/notifications/{notification}/pause", request()) : api.POST("/api/v1/notifications/{notification}/resume", request())),
    onSuccess: again,
    onError: toastError,
  });
  return (
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
  );
}

function SendTest({ rule, onSent }: { rule: Rule; onSent: () => void }) {
  const { request, again } = useRequest(rule);
  const test = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/notifications/{notification}/test", { ...request(), body: {} })),
    onSuccess: async () => {
      toast(`${rule.name} sends a test`);
      onSent();
      await again();
    },
    onError: toastError,
  });
  return (
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
  );
}

const STATES: Record<string, string> = { SENT: "SUCCEEDED", SENDING: "RUNNING", PENDING: "QUEUED", FAILED: "FAILED", DROPPED: "SKIPPED" };

const TOLD: Column<Schemas["NotificationRecord"]>[] = [
  { head: "When", className: "nowrap", cell: (each) => <Ago at={each.created_at} /> },
  { head: "State", cell: (each) => <State state={STATES[each.status] ?? "QUEUED"} word={words(each.status)} /> },
  {
    head: "About",
    cell: (each) => (
      <>
        {words(each.trigger)} {each.asset ?? ""} {each.run_id == null ? null : <Link href={runHref(each.run_id)} className="mono">{shortRun(each.run_id)}</Link>}
      </>
    ),
  },
  { head: "By", cell: (each) => each.channel },
  { head: "Tries", className: "right", cell: (each) => count(each.attempts) },
  { head: "Why", cell: (each) => <span style={{ color: "var(--failed)" }}>{each.last_error ?? ""}</span> },
];

function Told({ rule }: { rule: string }) {
  const query = useQuery({ ...notificationHistoryQuery(rule), refetchInterval: 2000 });
  return (
    <Panel title={`What ${rule} has told`} label="History of the rule">
      <Shown query={query} rows={3}>
        {({ items }) => (items.length === 0 ? <Empty title="Nothing yet" /> : <Table label="Notifications" items={items} columns={TOLD} id={(each) => each.notification_id} />)}
      </Shown>
    </Panel>
  );
}
