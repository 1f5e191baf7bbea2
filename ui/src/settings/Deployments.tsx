// Deployments: who deployed what when, what each of them changed, and the way back.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { deploymentByNumberQuery, deploymentQuery, deploymentsQuery } from "../api/queries";
import { Dialog } from "../parts/Dialog";
import { count, exactly, plural } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";
import { countsText, Diff } from "./Diff";
import { Act } from "../parts/Act";

type Deployment = Schemas["Deployment"];

export const deploymentHref = (number: number) => `/settings/deployments/${String(number)}`;

export function Deployments() {
  const query = useInfiniteQuery(deploymentsQuery);
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const current = items[0]?.number;
  const [back, setBack] = useState<number | undefined>();
  return (
    <div className="stack">
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={6} /> : null}
      {query.isSuccess && items.length === 0 ? (
        <Empty title="Nothing is deployed yet">
          <p>A deployment is what the workspace runs with. servo dev makes one when you save, and this command:</p>
          <pre>servo deploy</pre>
        </Empty>
      ) : null}
      {items.length === 0 ? null : (
        <section className="panel scroll" tabIndex={0} role="group" aria-label="Deployments">
          <table className="table">
            <thead>
              <tr>
                <th className="right">Number</th>
                <th>Deployed</th>
                <th>By</th>
                <th className="right">Assets</th>
                <th className="right">Changed</th>
                <th className="right">Removed</th>
                <th>Digest</th>
                <th>
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((deployment) => (
                <Row key={deployment.number} deployment={deployment} isCurrent={deployment.number === current} twin={twinOf(deployment, items)} onBack={setBack} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {query.hasNextPage ? (
        <div>
          <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older
          </button>
        </div>
      ) : null}
      {back === undefined || current === undefined ? null : (
        <RollbackDialog
          number={back}
          current={current}
          onClose={() => {
            setBack(undefined);
          }}
        />
      )}
    </div>
  );
}

/** The newest deployment before one that had the same definitions. */
function twinOf(deployment: Deployment, items: readonly Deployment[]): number | undefined {
  return items.find((other) => other.number < deployment.number && other.digest === deployment.digest)?.number;
}

function Row({ deployment, isCurrent, twin, onBack }: { deployment: Deployment; isCurrent: boolean; twin: number | undefined; onBack: (number: number) => void }) {
  return (
    <tr>
      <td className="right nowrap">
        <Link href={deploymentHref(deployment.number)}>#{deployment.number}</Link>
      </td>
      <td className="nowrap">
        <Ago at={deployment.deployed_at} /> {isCurrent ? <span className="chip">current</span> : null} {twin === undefined ? null : <span className="chip">as #{twin}</span>}
      </td>
      <td>{deployment.deployed_by}</td>
      <td className="right">{count(deployment.assets)}</td>
      <td className="right">{count(deployment.assets_upserted)}</td>
      <td className="right">{count(deployment.assets_removed)}</td>
      <td className="mono muted" title={deployment.digest}>
        {deployment.digest.slice(0, 15)}
      </td>
      <td className="nowrap right">
        <Link className="button small" href={deploymentHref(deployment.number)}>
          What changed
        </Link>{" "}
        <Act needs="assets.deploy"
         
          className="button small"
          disabled={isCurrent}
          title={isCurrent ? "It is what the workspace runs with" : undefined}
          aria-label={`Roll back to deployment ${String(deployment.number)}`}
          onClick={() => {
            onBack(deployment.number);
          }}
        >
          Roll back…
        </Act>
      </td>
    </tr>
  );
}

export default function DeploymentPage({ number }: { number: number }) {
  const query = useQuery(deploymentByNumberQuery(number));
  const current = useQuery(deploymentQuery);
  const [against, setAgainst] = useParam("with", "before");
  const [goesBack, setGoesBack] = useState(false);
  return (
    <div className="page stack">
      <div className="page-head" style={{ margin: 0 }}>
        <h1>
          <Link href="/settings/deployments" className="crumb" style={{ fontWeight: 400 }}>
            Deployments /{" "}
          </Link>
          #{number}
        </h1>
        {query.data?.is_current === true ? <span className="chip">current</span> : null}
        <div className="actions">
          <Act needs="assets.deploy"
           
            className="button danger"
            disabled={query.data?.is_current !== false}
            title={query.data?.is_current === true ? "It is what the workspace runs with" : undefined}
            onClick={() => {
              setGoesBack(true);
            }}
          >
            Roll back to it…
          </Act>
        </div>
      </div>
      <Shown query={query} rows={4}>
        {(data) => (
          <>
            <Panel label="About the deployment">
              <dl className="facts body" style={{ paddingTop: 12 }}>
                <dt>Project</dt>
                <dd>{data.project}</dd>
                <dt>Deployed</dt>
                <dd title={exactly(data.deployed_at)}>
                  <Ago at={data.deployed_at} /> by {data.deployed_by}
                </dd>
                <dt>Has</dt>
                <dd>
                  {plural(data.assets, "asset")}, {plural(data.schedules, "schedule")}, {plural(data.sensors, "sensor")}
                </dd>
                <dt>Changed</dt>
                <dd>{countsText(data.changes)}</dd>
                <dt>Digest</dt>
                <dd className="mono">{data.digest}</dd>
                <dt>Time zones</dt>
                <dd>{data.time_zones}</dd>
              </dl>
            </Panel>
            <Panel
              title="What differs"
              label="What differs"
              aside={
                <span className="segments" role="group" aria-label="Compared with" style={{ marginLeft: "auto" }}>
                  {[
                    ["before", number === 1 ? "with nothing" : `with #${String(number - 1)}, before it`],
                    ["current", "with what is current"],
                  ].map(([value = "", text]) => (
                    <button
                      key={value}
                      type="button"
                      aria-pressed={against === value}
                      disabled={value === "current" && data.is_current}
                      onClick={() => {
                        setAgainst(value);
                      }}
                    >
                      {text}
                    </button>
                  ))}
                </span>
              }
            >
              <div className="body">{against === "current" && current.data !== undefined ? <Diff from={number} to={current.data.number} /> : <Diff from={number - 1} to={number} />}</div>
            </Panel>
            {goesBack && current.data !== undefined ? (
              <RollbackDialog
                number={number}
                current={current.data.number}
                onClose={() => {
                  setGoesBack(false);
                }}
              />
            ) : null}
          </>
        )}
      </Shown>
    </div>
  );
}

function RollbackDialog({ number, current, onClose }: { number: number; current: number; onClose: () => void }) {
  const queries = useQueryClient();
  const roll = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/deployments/{number}/rollback", { params: { path: { number }, header: once() }, body: { expected_current: current } })),
    onSuccess: async (done) => {
      await queries.invalidateQueries();
      toast(done.outdated_workers > 0 ? `The definitions of #${String(number)} are current; ${plural(done.outdated_workers, "worker has", "workers have")} other code` : `The definitions of #${String(number)} are current`, done.outdated_workers > 0 ? { href: "/settings/workers", link: "Workers" } : {});
      onClose();
    },
  });
  return (
    <Dialog title={`Roll back to deployment #${String(number)}`} onClose={onClose}>
      <div className="content">
        <p>A new deployment gets the definitions that #{number} had. Data and history stay, and you can roll forward in the same way.</p>
        <p className="notice">
          The code is not changed by it. Workers with other code than that of #{number} get no tasks until they have it; <code>servo deploy</code>, or saving a file under <code>servo dev</code>, makes the project on disk current again.
        </p>
        <Diff from={current} to={number} />
        {roll.error === null ? null : <ProblemBox error={roll.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button danger"
          disabled={roll.isPending}
          onClick={() => {
            roll.mutate();
          }}
        >
          {roll.isPending ? "Rolling back…" : `Roll back to #${String(number)}`}
        </button>
      </footer>
    </Dialog>
  );
}
