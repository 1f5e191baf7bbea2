// Who may come in: yourself, the identity provider, and API keys, which admins create and revoke.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { keysQuery, loginOptionsQuery, meQuery } from "../api/queries";
import { Act, Needs } from "../parts/Act";
import { ActionDialog } from "../parts/ActionDialog";
import { Check } from "../parts/fields";
import { plural } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
import { ACTIONS, Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";
import { CreatedKey, NewKey } from "./NewKey";
import { Sessions } from "./Sessions";

type ApiKey = Schemas["ApiKey"];

export function People() {
  const options = useQuery(loginOptionsQuery);
  return (
    <div className="stack">
      <You />
      <Shown query={options} rows={4}>
        {({ api_keys }) =>
          api_keys === true ? (
            <Needs permission="keys.manage" what="API keys">
              <div className="stack">
                <Keys />
                <Sessions />
              </div>
            </Needs>
          ) : (
            <Panel label="API keys">
              <Empty title="This server has no API keys">
                <p>servo dev lets in whoever can read its files, and is for one person. Keys with roles come with servo serve, which many share:</p>
                <pre>{"servo serve --dir /var/lib/servo\nservo admin api-keys create nightly --role operator --scope default/main"}</pre>
              </Empty>
            </Panel>
          )
        }
      </Shown>
    </div>
  );
}

function You() {
  const me = useQuery(meQuery);
  const options = useQuery(loginOptionsQuery);
  const leave = useMutation({
    mutationFn: async () => {
      // It answers by going to the first page; the session is over by then.
      await fetch("/logout", { method: "POST", credentials: "same-origin", redirect: "manual" });
    },
    onSuccess: () => {
      location.assign("/");
    },
  });
  return (
    <Panel
      title="You"
      label="You"
      aside={
        <>
          <span className="grow" />
          <button
            type="button"
            className="button small"
            disabled={leave.isPending}
            onClick={() => {
              leave.mutate();
            }}
          >
            Sign out
          </button>
        </>
      }
    >
      <div className="body">
        <Shown query={me} rows={3}>
          {(data) => (
            <dl className="facts">
              <dt>Known as</dt>
              <dd className="mono">{data.principal}</dd>
              <dt>Workspace</dt>
              <dd className="mono">
                {data.tenant}/{data.workspace}
              </dd>
              <dt>Role</dt>
              <dd>
                {data.roles.length === 0 ? "none" : data.roles.join(", ")} <span className="muted">in</span> <span className="mono">{data.scopes.join(", ")}</span>
              </dd>
              <dt>May</dt>
              <dd>
                <details>
                  <summary>{plural(data.permissions.length, "permission")}</summary>
                  <span className="muted">{data.permissions.join(", ")}</span>
                </details>
              </dd>
              <dt>People sign in</dt>
              <dd>{options.data?.oidc == null ? "by a link of servo open, or by a key" : `at ${options.data.oidc.issuer}, whose groups decide what they may do; or by a link or a key`}</dd>
            </dl>
          )}
        </Shown>
        {leave.error === null ? null : <ProblemBox error={leave.error} />}
      </div>
    </Panel>
  );
}

const STATES: Record<string, string> = { ACTIVE: "ACTIVE", REVOKED: "CANCELLED", EXPIRED: "SKIPPED" };

function Keys() {
  const [all, setAll] = useParam("all");
  const query = useInfiniteQuery(keysQuery(all !== ""));
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Schemas["CreatedKey"] | undefined>();
  const [revoked, setRevoked] = useState<ApiKey | undefined>();
  const columns: Column<ApiKey>[] = [
    { head: "State", cell: (key) => <State state={STATES[key.status] ?? "QUEUED"} word={key.status.toLowerCase()} /> },
    { head: "Name", cell: (key) => key.name },
    { head: "Id", className: "mono", cell: (key) => key.key_id },
    { head: "Role", cell: (key) => key.role },
    {
      head: "Good for",
      className: "mono",
      cell: (key) => (
        <>
          {key.scope}
          {key.assets == null ? null : <div className="muted">{key.assets}</div>}
        </>
      ),
    },
    { head: "Used by", className: "muted", cell: (key) => (key.service ? "a program" : "a person") },
    { head: "Created", className: "nowrap", title: (key) => `by ${key.created_by}`, cell: (key) => <Ago at={key.created_at} /> },
    { head: "Expires", className: "nowrap", cell: (key) => (key.revoked_at != null ? <>revoked <Ago at={key.revoked_at} /></> : key.expires_at == null ? <span className="muted">never</span> : <Ago at={key.expires_at} />) },
    { head: "Last used", className: "nowrap", cell: (key) => (key.last_used_at == null ? <span className="muted">never</span> : <Ago at={key.last_used_at} />) },
    {
      head: ACTIONS,
      className: "right",
      cell: (key) =>
        key.status === "ACTIVE" ? (
          <Act
            needs="keys.manage"
            className="button small danger"
            aria-label={`Revoke ${key.name}`}
            onClick={() => {
              setRevoked(key);
            }}
          >
            Revoke…
          </Act>
        ) : null,
    },
  ];
  return (
    <Panel
      title="API keys"
      label="API keys"
      aside={
        <>
          <span className="grow" />
          <Check
            checked={all !== ""}
            onChange={(checked) => {
              setAll(checked ? "1" : "");
            }}
          >
            Also revoked and expired
          </Check>
          <Act
            needs="keys.manage"
            className="button small primary"
            onClick={() => {
              setNew(true);
            }}
          >
            New key…
          </Act>
        </>
      }
    >
      <Paged
        query={query}
        rows={4}
        next="Show more"
        isInPanel
        empty={
          <Empty title="There are no keys">
            <p>A key lets a person or a program in with a role. The same in the terminal:</p>
            <pre>servo admin api-keys create nightly --role operator --scope acme/main --service</pre>
          </Empty>
        }
      >
        {(items) => <Table label="Keys" items={items} columns={columns} id={(key) => key.key_id} />}
      </Paged>
      {isNew ? (
        <NewKey
          onClose={() => {
            setNew(false);
          }}
          onMade={(key) => {
            setNew(false);
            setMade(key);
          }}
        />
      ) : null}
      {made === undefined ? null : (
        <CreatedKey
          made={made}
          onClose={() => {
            setMade(undefined);
          }}
        />
      )}
      {revoked === undefined ? null : (
        <Revoke
          apiKey={revoked}
          onClose={() => {
            setRevoked(undefined);
          }}
        />
      )}
    </Panel>
  );
}

function Revoke({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => answer(api.POST("/api/v1/admin/keys/{key_id}/revoke", { params: { path: { key_id: apiKey.key_id } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["keys"] });
      toast(`${apiKey.name} is revoked`);
      onClose();
    },
  });
  return (
    <ActionDialog
      title={`Revoke ${apiKey.name}`}
      onClose={onClose}
      action={`Revoke ${apiKey.name}`}
      onAct={() => {
        revoke.mutate();
      }}
      change={revoke}
      isDangerous
    >
      <p>
        The key <code>{apiKey.key_id}</code> ({apiKey.role} in {apiKey.scope}) is refused from now on, and browsers that signed in with it are signed out. This cannot be undone: create another key instead.
      </p>
      {apiKey.last_used_at == null ? <p className="muted">It was never used, as far as this server knows.</p> : <p className="muted">It was last used <Ago at={apiKey.last_used_at} />.</p>}
    </ActionDialog>
  );
}
