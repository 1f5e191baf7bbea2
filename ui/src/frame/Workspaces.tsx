// Which workspace is looked at, and the way to others that the viewer may open.
import { useQuery } from "@tanstack/react-query";
import { RequestFailed } from "../api/client";
import { deploymentQuery, meQuery, workspacesQuery } from "../api/queries";
import { base, baseOf } from "../api/workspace";
import { Empty, Panel, Shown } from "../parts/Panel";

/** Another workspace is another set of pages: everything that is known of this one is left behind. */
const go = (place: string) => {
  location.assign(`${place}/`);
};

export function WorkspaceSwitch() {
  const me = useQuery(meQuery);
  const deployment = useQuery(deploymentQuery);
  const here = me.data === undefined ? undefined : `${me.data.tenant}/${me.data.workspace}`;
  // Whoever is let into one alone is not asked about others.
  const isElsewhere = me.data?.scopes.some((scope) => scope !== here) ?? false;
  const workspaces = useQuery({ ...workspacesQuery, enabled: isElsewhere });
  const items = workspaces.data?.items ?? [];
  if (here === undefined || me.data === undefined || items.length < 2)
    return (
      <span className="workspace ellipsis muted" title={here === undefined ? undefined : `The project that is deployed to ${here}`}>
        {deployment.data?.project ?? "\u00a0"}
      </span>
    );
  return (
    <select
      className="field workspace"
      aria-label="Workspace"
      value={baseOf(me.data.tenant, me.data.workspace)}
      onChange={(event) => {
        go(event.target.value);
      }}
    >
      {items.map((each) => (
        <option key={baseOf(each.tenant, each.workspace)} value={baseOf(each.tenant, each.workspace)}>
          {each.tenant} / {each.workspace}
        </option>
      ))}
      {items.some((each) => `${each.tenant}/${each.workspace}` === here) ? null : (
        <option value={baseOf(me.data.tenant, me.data.workspace)}>
          {me.data.tenant} / {me.data.workspace}
        </option>
      )}
    </select>
  );
}

/** Whether the server cannot tell which workspace is meant, or does not have the one that is named. */
export function useNoWorkspace(): boolean {
  const { data, error } = useQuery(meQuery);
  return data === undefined && error instanceof RequestFailed && error.problem?.code === "unknown_workspace";
}

export function ChooseWorkspace() {
  const workspaces = useQuery(workspacesQuery);
  return (
    <div className="page">
      <Panel label="Choose a workspace">
        <Shown query={workspaces} rows={3}>
          {({ items }) => (
            <Empty title={base === "" ? "Which workspace?" : "There is no such workspace, or you may not open it"}>
              {items.length === 0 ? <p>You may open none. An admin can give you a role in one.</p> : null}
              {items.map((each) => (
                <a key={baseOf(each.tenant, each.workspace)} className="button" href={`${baseOf(each.tenant, each.workspace)}/`}>
                  {each.tenant} / {each.workspace}
                </a>
              ))}
            </Empty>
          )}
        </Shown>
      </Panel>
    </div>
  );
}
