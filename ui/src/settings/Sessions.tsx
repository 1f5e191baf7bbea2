// Browsers that are signed in: who, how, since when; an admin ends one, or everything that somebody has signed in with.
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { sessionsQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { Dialog } from "../parts/Dialog";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";

type Session = Schemas["Session"];

const LOGINS: Record<string, string> = { owner: "a link of servo open", key: "an API key", provider: "the identity provider" };

export function Sessions() {
  const query = useInfiniteQuery(sessionsQuery);
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const [ended, setEnded] = useState<Session | undefined>();
  return (
    <Panel title="Signed in" label="Signed in">
      {query.error === null ? null : (
        <div style={{ padding: 12 }}>
          <ProblemBox error={query.error} again={() => void query.refetch()} />
        </div>
      )}
      {query.isPending ? <Skeleton rows={2} /> : null}
      {query.isSuccess && items.length === 0 ? <Empty title="No browser is signed in" /> : null}
      {items.length === 0 ? null : (
        <div className="scroll" tabIndex={0} role="group" aria-label="Sessions">
          <table className="table">
            <thead>
              <tr>
                <th>Who</th>
                <th>Signed in with</th>
                <th>Since</th>
                <th>Ends by itself</th>
                <th>
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((session) => (
                <tr key={session.session_id}>
                  <td className="mono">{session.principal}</td>
                  <td>
                    {LOGINS[session.login] ?? session.login}
                    {session.key_id == null ? null : <span className="muted mono"> {session.key_id}</span>}
                  </td>
                  <td className="nowrap">
                    <Ago at={session.started_at} />
                  </td>
                  <td className="nowrap">
                    <Ago at={session.expires_at} />
                  </td>
                  <td className="right">
                    <Act
                      needs="keys.manage"
                      className="button small danger"
                      aria-label={`Sign out ${session.principal}`}
                      onClick={() => {
                        setEnded(session);
                      }}
                    >
                      Sign out…
                    </Act>
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
      {ended === undefined ? null : (
        <EndSession
          session={ended}
          onClose={() => {
            setEnded(undefined);
          }}
        />
      )}
    </Panel>
  );
}

function EndSession({ session, onClose }: { session: Session; onClose: () => void }) {
  const queries = useQueryClient();
  const end = useMutation({
    mutationFn: (all: boolean) =>
      answer(all ? api.POST("/api/v1/admin/sessions/end", { body: { principal: session.principal } }) : api.POST("/api/v1/admin/sessions/{session_id}/end", { params: { path: { session_id: session.session_id } } })),
    onSuccess: async () => {
      toast(`${session.principal} is signed out`);
      onClose();
      await queries.invalidateQueries({ queryKey: ["sessions"] });
    },
  });
  return (
    <Dialog title={`Sign out ${session.principal}`} onClose={onClose}>
      <div className="content">
        <p>Requests of the browser are refused at once, and its streams end. Whoever it is can sign in again, unless their key is revoked or the identity provider refuses them.</p>
        {end.error === null ? null : <ProblemBox error={end.error} />}
      </div>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="button danger"
          disabled={end.isPending}
          onClick={() => {
            end.mutate(true);
          }}
        >
          End everything of theirs
        </button>
        <button
          type="button"
          className="button danger"
          disabled={end.isPending}
          onClick={() => {
            end.mutate(false);
          }}
        >
          End this session
        </button>
      </footer>
    </Dialog>
  );
}
