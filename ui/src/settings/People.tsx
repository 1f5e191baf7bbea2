// Who may come in: yourself, the identity provider, and API keys, which admins create and revoke.
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { keysQuery, loginOptionsQuery, meQuery } from "../api/queries";
import { Act, Needs } from "../parts/Act";
import { Dialog } from "../parts/Dialog";
import { plural } from "../parts/format";
import { Empty, Panel, ProblemBox, Shown, Skeleton } from "../parts/Panel";
import { useParam } from "../parts/params";
import { State } from "../parts/State";
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
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<Schemas["CreatedKey"] | undefined>();
  const [revoked, setRevoked] = useState<ApiKey | undefined>();
  return (
    <Panel
      title="API keys"
      label="API keys"
      aside={
        <>
          <span className="grow" />
          <label className="row" style={{ fontSize: 13 }}>
            <input
              type="checkbox"
              checked={all !== ""}
              onChange={(event) => {
                setAll(event.target.checked ? "1" : "");
              }}
            />
            Also revoked and expired
          </label>
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
      {query.error === null ? null : (
        <div style={{ padding: 12 }}>
          <ProblemBox error={query.error} again={() => void query.refetch()} />
        </div>
      )}
      {query.isPending ? <Skeleton rows={4} /> : null}
      {query.isSuccess && items.length === 0 ? (
        <Empty title="There are no keys">
          <p>A key lets a person or a program in with a role. The same in the terminal:</p>
          <pre>servo admin api-keys create nightly --role operator --scope acme/main --service</pre>
        </Empty>
      ) : null}
      {items.length === 0 ? null : (
        <div className="scroll" tabIndex={0} role="group" aria-label="Keys">
          <table className="table">
            <thead>
              <tr>
                <th>State</th>
                <th>Name</th>
                <th>Id</th>
                <th>Role</th>
                <th>Good for</th>
                <th>Used by</th>
                <th>Created</th>
                <th>Expires</th>
                <th>Last used</th>
                <th>
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((key) => (
                <tr key={key.key_id}>
                  <td>
                    <State state={STATES[key.status] ?? "QUEUED"} word={key.status.toLowerCase()} />
                  </td>
                  <td>{key.name}</td>
                  <td className="mono">{key.key_id}</td>
                  <td>{key.role}</td>
                  <td className="mono">
                    {key.scope}
                    {key.assets == null ? null : <div className="muted">{key.assets}</div>}
                  </td>
                  <td className="muted">{key.service ? "a program" : "a person"}</td>
                  <td className="nowrap" title={`by ${key.created_by}`}>
                    <Ago at={key.created_at} />
                  </td>
                  <td className="nowrap">{key.revoked_at != null ? <>revoked <Ago at={key.revoked_at} /></> : key.expires_at == null ? <span className="muted">never</span> : <Ago at={key.expires_at} />}</td>
                  <td className="nowrap">{key.last_used_at == null ? <span className="muted">never</span> : <Ago at={key.last_used_at} />}</td>
                  <td className="right">
                    {key.status === "ACTIVE" ? (
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
                    ) : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {query.hasNextPage ? (
        <div style={{ padding: 12 }}>
          <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more
          </button>
        </div>
      ) : null}
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
    <Dialog title={`Revoke ${apiKey.name}`} onClose={onClose}>
      <div className="content">
        <p>
          The key <code>{apiKey.key_id}</code> ({apiKey.role} in {apiKey.scope}) is refused from now on, and browsers that signed in with it are signed out. This cannot be undone: create another key instead.
        </p>
        {apiKey.last_used_at == null ? <p className="muted">It was never used, as far as this server knows.</p> : <p className="muted">It was last used <Ago at={apiKey.last_used_at} />.</p>}
        {revoke.error === null ? null : <ProblemBox error={revoke.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button danger"
          disabled={revoke.isPending}
          onClick={() => {
            revoke.mutate();
          }}
        >
          Revoke {apiKey.name}
        </button>
      </footer>
    </Dialog>
  );
}
