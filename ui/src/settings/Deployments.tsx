// Deployments: who deployed what when, what each of them changed, and the way back.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answer, api, once, type Schemas } from "../api/client";
import { deploymentByNumberQuery, deploymentQuery, deploymentsQuery } from "../api/queries";
import { ActionDialog } from "../parts/ActionDialog";
import { Segments } from "../parts/fields";
import { count, exactly, plural } from "../parts/format";
import { PageHead } from "../parts/PageHead";
import { Empty, Panel, Shown } from "../parts/Panel";
import { useParam } from "../parts/params";
import { ACTIONS, Paged, Table, usePages, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";
import { countsText, Diff } from "./Diff";
import { Act } from "../parts/Act";

type Deployment = Schemas["Deployment"];

export const deploymentHref = (number: number) => `/settings/deployments/${String(number)}`;

export function Deployments() {
  const query = useInfiniteQuery(deploymentsQuery);
  const { items } = usePages(query);
  const current = items[0]?.number;
  const [back, setBack] = useState<number | undefined>();
  const columns: Column<Deployment>[] = [
    { head: "Number", className: "right nowrap", cell: ({ number }) => <Link href={deploymentHref(number)}>#{number}</Link> },
    {
      head: "Deployed",
      className: "nowrap",
      cell: (deployment) => {
        const twin = twinOf(deployment, items);
        return (
          <>
            <Ago at={deployment.deployed_at} /> {deployment.number === current ? <span className="chip">current</span> : null} {twin === undefined ? null : <span className="chip">as #{twin}</span>}
          </>
        );
      },
    },
    { head: "By", cell: (deployment) => deployment.deployed_by },
    { head: "Assets", className: "right", cell: (deployment) => count(deployment.assets) },
    { head: "Changed", className: "right", cell: (deployment) => count(deployment.assets_upserted) },
    { head: "Removed", className: "right", cell: (deployment) => count(deployment.assets_removed) },
    { head: "Digest", className: "mono muted", title: (deployment) => deployment.digest, cell: (deployment) => deployment.digest.slice(0, 15) },
    {
      head: ACTIONS,
      className: "nowrap right",
      cell: ({ number }) => (
        <>
          <Link className="button small" href={deploymentHref(number)}>
            What changed
          </Link>{" "}
          <Act
            needs="assets.deploy"
            className="button small"
            disabled={number === current}
            title={number === current ? IS_CURRENT : undefined}
            aria-label={`Roll back to deployment ${String(number)}`}
            onClick={() => {
              setBack(number);
            }}
          >
            Roll back…
          </Act>
        </>
      ),
    },
  ];
  return (
    <div className="stack">
      <Paged
        query={query}
        empty={
          <Empty title="Nothing is deployed yet">
            <p>A deployment is what the workspace runs with. servo dev makes one when you save, and this command:</p>
            <pre>servo deploy</pre>
          </Empty>
        }
      >
        {(shown) => (
          <section className="panel">
            <Table label="Deployments" items={shown} columns={columns} id={({ number }) => String(number)} href={({ number }) => deploymentHref(number)} />
          </section>
        )}
      </Paged>
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

const IS_CURRENT = "It is what the workspace runs with";

/** The newest deployment before one that had the same definitions. */
function twinOf(deployment: Deployment, items: readonly Deployment[]): number | undefined {
  return items.find((other) => other.number < deployment.number && other.digest === deployment.digest)?.number;
}

export default function DeploymentPage({ number }: { number: number }) {
  const query = useQuery(deploymentByNumberQuery(number));
  const current = useQuery(deploymentQuery);
  const [against, setAgainst] = useParam("with", "before");
  const [goesBack, setGoesBack] = useState(false);
  return (
    <div className="page stack">
      <PageHead
        of={["/settings/deployments", "Deployments"]}
        title={`#${String(number)}`}
        actions={
          <Act
            needs="assets.deploy"
            className="button danger"
            disabled={query.data?.is_current !== false}
            title={query.data?.is_current === true ? IS_CURRENT : undefined}
            onClick={() => {
              setGoesBack(true);
            }}
          >
            Roll back to it…
          </Act>
        }
      >
        {query.data?.is_current === true ? <span className="chip">current</span> : null}
      </PageHead>
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
                <>
                  <span className="grow" />
                  <Segments
                    label="Compared with"
                    value={against}
                    choices={[
                      ["before", number === 1 ? "with nothing" : `with #${String(number - 1)}, before it`],
                      ["current", "with what is current"],
                    ]}
                    onChange={setAgainst}
                    isDisabled={(value) => value === "current" && data.is_current}
                  />
                </>
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
    <ActionDialog
      title={`Roll back to deployment #${String(number)}`}
      onClose={onClose}
      action={roll.isPending ? "Rolling back…" : `Roll back to #${String(number)}`}
      onAct={() => {
        roll.mutate();
      }}
      change={roll}
      isDangerous
    >
      <p>A new deployment gets the definitions that #{number} had. Data and history stay, and you can roll forward in the same way.</p>
      <p className="notice">
        The code is not changed by it. Workers with other code than that of #{number} get no tasks until they have it; <code>servo deploy</code>, or saving a file under <code>servo dev</code>, makes the project on disk current again.
      </p>
      <Diff from={current} to={number} />
    </ActionDialog>
  );
}
