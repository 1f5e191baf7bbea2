// Browsers that are signed in: who, how, since when; an admin ends one, or everything that somebody has signed in with.
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { sessionsQuery } from "../api/queries";
import { Act } from "../parts/Act";
import { ActionDialog } from "../parts/ActionDialog";
import { Empty, Panel } from "../parts/Panel";
import { ACTIONS, Paged, Table, type Column } from "../parts/Table";
import { Ago } from "../parts/Time";
import { toast } from "../parts/toasts";

type Session = Schemas["Session"];

const LOGINS: Record<string, string> = { owner: "a link of servo open", key: "an API key", provider: "the identity provider" };

export function Sessions() {
  const query = useInfiniteQuery(sessionsQuery);
  const [ended, setEnded] = useState<Session | undefined>();
  const columns: Column<Session>[] = [
    { head: "Who", className: "mono", cell: (session) => session.principal },
    {
      head: "Signed in with",
      cell: (session) => (
        <>
          {LOGINS[session.login] ?? session.login}
          {session.key_id == null ? null : <span className="muted mono"> {session.key_id}</span>}
        </>
      ),
    },
    { head: "Since", className: "nowrap", cell: (session) => <Ago at={session.started_at} /> },
    { head: "Ends by itself", className: "nowrap", cell: (session) => <Ago at={session.expires_at} /> },
    {
      head: ACTIONS,
      className: "right",
      cell: (session) => (
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
      ),
    },
  ];
  return (
    <Panel title="Signed in" label="Signed in">
      <Paged query={query} rows={2} next="Show more" isInPanel empty={<Empty title="No browser is signed in" />}>
        {(items) => <Table label="Sessions" items={items} columns={columns} id={(session) => session.session_id} />}
      </Paged>
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
    <ActionDialog
      title={`Sign out ${session.principal}`}
      onClose={onClose}
      action="End this session"
      onAct={() => {
        end.mutate(false);
      }}
      change={end}
      isDangerous
      others={
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
      }
    >
      <p>Requests of the browser are refused at once, and its streams end. Whoever it is can sign in again, unless their key is revoked or the identity provider refuses them.</p>
    </ActionDialog>
  );
}
