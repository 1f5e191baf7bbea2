// In place of a page while the server does not know this browser. Comes back to the same page by itself.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, RequestFailed } from "../api/client";
import { loginOptionsQuery } from "../api/queries";
import { Panel } from "../parts/Panel";

const LOOK_EVERY_MS = 2000;

export function SignedOut() {
  const queries = useQueryClient();
  const options = useQuery(loginOptionsQuery);
  const [key, setKey] = useState("");
  useEffect(() => {
    const timer = setInterval(() => void queries.invalidateQueries(), LOOK_EVERY_MS);
    return () => {
      clearInterval(timer);
    };
  }, [queries]);
  const enter = useMutation({
    mutationFn: async () => {
      const { data, error, response } = await api.POST("/api/v1/logins", { headers: { authorization: `Bearer ${key.trim()}` } });
      if (data === undefined) throw new RequestFailed(response.status, error);
      return data;
    },
    onSuccess: ({ path }) => {
      location.assign(`${path}&next=${encodeURIComponent(location.pathname + location.search)}`);
    },
  });
  return (
    <div className="page">
      <Panel label="Not signed in">
        <form
          className="empty"
          onSubmit={(event) => {
            event.preventDefault();
            if (key.trim() !== "" && !enter.isPending) enter.mutate();
          }}
        >
          <strong>This browser is not signed in</strong>
          {options.data?.oidc == null ? (
            <p>With an API key:</p>
          ) : (
            <>
              <a className="button primary" href={`/login?next=${encodeURIComponent(location.pathname + location.search)}`}>
                Sign in at {new URL(options.data.oidc.issuer).host}
              </a>
              <p>Or with an API key:</p>
            </>
          )}
          <div className="row">
            <input
              className="field mono"
              type="password"
              autoComplete="current-password"
              aria-label="API key"
              placeholder="API key"
              style={{ width: 320 }}
              value={key}
              onChange={(event) => {
                setKey(event.target.value);
              }}
            />
            <button type="submit" className={options.data?.oidc == null ? "button primary" : "button"} disabled={key.trim() === "" || enter.isPending}>
              Sign in
            </button>
          </div>
          {enter.error === null ? null : (
            <p role="alert" style={{ color: "var(--failed)" }}>
              {enter.error instanceof RequestFailed && enter.error.status === 401 ? "The server does not know this key." : enter.error.message}
            </p>
          )}
          <p>Or, where the files of the server can be read, in the directory of the project:</p>
          <pre>servo open</pre>
          <p>This page goes on by itself when you are in.</p>
        </form>
      </Panel>
    </div>
  );
}
