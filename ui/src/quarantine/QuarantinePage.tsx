// Data that a check blocked and that waits for somebody to decide.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, assetPath, once, type Schemas } from "../api/client";
import { quarantineQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { ActionDialog, ReasonField } from "../parts/ActionDialog";
import { assetHref, bytes, dotted, plural, runHref } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, Shown } from "../parts/Panel";
import { State, Tones } from "../parts/State";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";

type Item = Schemas["Quarantined"];

export default function QuarantinePage() {
  const query = useQuery(quarantineQuery);
  return (
    <div className="page stack">
      <PageHead title="Quarantine" />
      <Shown query={query} rows={6}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing waits for review">
              <p>Data that a check blocks is kept here instead of being thrown away, if its asset says so:</p>
              <pre>{'@servo.asset(quarantine=True,\n             checks=[servo.row_count(min=1, severity="critical")])'}</pre>
            </Empty>
          ) : (
            items.map((item) => <Waiting key={item.materialization_id + item.asset_key} item={item} />)
          )
        }
      </Shown>
    </div>
  );
}

function Waiting({ item }: { item: Item }) {
  const [verdict, setVerdict] = useState<"approve" | "reject" | undefined>();
  const failed = (item.output?.checks ?? []).filter((check) => !check.passed);
  const passed = (item.output?.checks ?? []).length - failed.length;
  return (
    <Panel
      label={dotted(item.asset_key)}
      title={
        <Link href={assetHref(item.asset_key)} className="mono">
          {dotted(item.asset_key)}
          {item.partition == null ? "" : `[${item.partition}]`}
        </Link>
      }
      aside={
        <>
          <Tones tone="blocked">Quarantined</Tones>
          <span className="muted">
            <Ago at={item.quarantined_at} />
          </span>
          <span className="grow" />
          <Act needs="quarantine.review"
           
            className="button small"
            onClick={() => {
              setVerdict("approve");
            }}
          >
            Approve…
          </Act>
          <Act needs="quarantine.review"
           
            className="button small danger"
            onClick={() => {
              setVerdict("reject");
            }}
          >
            Reject…
          </Act>
        </>
      }
    >
      <div className="body stack" style={{ gap: 8 }}>
        {failed.map((check) => (
          <div key={check.name} className="row wrap" style={{ fontSize: 13 }}>
            <State state="FAILED" word={check.severity} />
            <span className="mono">{check.name}</span>
            <span>{check.message ?? check.error ?? ""}</span>
          </div>
        ))}
        <div className="row wrap muted" style={{ fontSize: 13 }}>
          {passed > 0 ? <span>{plural(passed, "check")} passed</span> : null}
          {item.output?.row_count == null ? null : <span>{plural(item.output.row_count, "row")}</span>}
          {item.output?.byte_size == null ? null : <span>{bytes(item.output.byte_size)}</span>}
          <Link href={`${runHref(item.run_id)}?task=${item.task_id}`}>See the log</Link>
        </div>
      </div>
      {verdict === undefined ? null : (
        <ReviewDialog
          item={item}
          verdict={verdict}
          onClose={() => {
            setVerdict(undefined);
          }}
        />
      )}
    </Panel>
  );
}

function ReviewDialog({ item, verdict, onClose }: { item: Item; verdict: "approve" | "reject"; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const name = `${dotted(item.asset_key)}${item.partition == null ? "" : `[${item.partition}]`}`;
  const review = useMutation({
    mutationFn: async () => {
      const request = { params: { path: { ...assetPath(item.asset_key), materialization_id: item.materialization_id }, header: once() }, body: { reason } };
      const accepted = await answer(verdict === "approve" ? api.POST("/api/v1/quarantine/{namespace}/{name}/{materialization_id}/approve", request) : api.POST("/api/v1/quarantine/{namespace}/{name}/{materialization_id}/reject", request));
      // The list is shown when the server has the change.
      const event = accepted.accepted_event_id;
      if (event != null) queries.setQueryData(quarantineQuery.queryKey, await answer(api.GET("/api/v1/quarantine", { params: { query: { limit: 100, wait_for_event_id: event } } })));
    },
    onSuccess: () => {
      toast(verdict === "approve" ? `${name} counts now` : `${name} is rejected`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title={verdict === "approve" ? `Approve ${name}?` : `Reject ${name}?`}
      onClose={onClose}
      action={verdict === "approve" ? "Approve the data" : "Reject and remove the data"}
      onAct={() => {
        review.mutate();
      }}
      change={review}
      isDangerous={verdict === "reject"}
    >
      <p>{verdict === "approve" ? "The data counts from now on: assets that are made later read it. What the run skipped is not made by itself." : "The data is removed for good. The materialization before it stays the newest."}</p>
      <ReasonField value={reason} onChange={setReason} />
    </ActionDialog>
  );
}
