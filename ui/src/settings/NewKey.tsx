// A new API key: what it is good for, and the one time that it is shown.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { meQuery, workspacesQuery } from "../api/queries";
import { Dialog } from "../parts/Dialog";
import { ProblemBox } from "../parts/Panel";
import { toast } from "../parts/toasts";

const ROLES: [string, string][] = [
  ["viewer", "reads"],
  ["operator", "also triggers, retries, cancels, pauses, reviews"],
  ["developer", "also deploys, and defines schedules and sensors"],
  ["admin", "also keys, settings, retention and the audit"],
  ["worker", "takes tasks and reports on them, nothing else"],
];
const DAY_MS = 86_400_000;
const LENGTHS: [string, number | undefined][] = [
  ["in 7 days", 7 * DAY_MS],
  ["in 30 days", 30 * DAY_MS],
  ["in 90 days", 90 * DAY_MS],
  ["in a year", 365 * DAY_MS],
  ["never", undefined],
];

export function NewKey({ onClose, onMade }: { onClose: () => void; onMade: (key: Schemas["CreatedKey"]) => void }) {
  const me = useQuery(meQuery);
  const workspaces = useQuery(workspacesQuery);
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [scope, setScope] = useState<string | undefined>();
  const [assets, setAssets] = useState("");
  const [isService, setService] = useState(false);
  const [expires, setExpires] = useState("in 90 days");
  const here = me.data === undefined ? "" : `${me.data.tenant}/${me.data.workspace}`;
  const known = (workspaces.data?.items ?? []).map((each) => `${each.tenant}/${each.workspace}`);
  const tenants = [...new Set((workspaces.data?.items ?? []).map((each) => `${each.tenant}/*`))];
  const create = useMutation({
    mutationFn: () => {
      const length = LENGTHS.find(([text]) => text === expires)?.[1];
      const body = { name: name.trim(), role, scope: (scope ?? here).trim(), service: isService, ...(assets.trim() === "" ? {} : { assets: assets.trim() }), ...(length === undefined ? {} : { expires_in_ms: length }) };
      return answer(api.POST("/api/v1/admin/keys", { body }));
    },
    onSuccess: async (key) => {
      onMade(key);
      await queries.invalidateQueries({ queryKey: ["keys"] });
    },
  });
  const isWhole = name.trim() !== "" && (scope ?? here).trim() !== "";
  return (
    <Dialog title="New API key" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isWhole && !create.isPending) create.mutate();
        }}
      >
        <div className="content">
          <label className="line">
            Name: what it is for
            <input
              className="field"
              placeholder="nightly loader"
              value={name}
              onChange={(event) => {
                setName(event.target.value);
              }}
            />
          </label>
          <label className="line">
            Role
            <select
              className="field"
              value={role}
              onChange={(event) => {
                setRole(event.target.value);
              }}
            >
              {ROLES.map(([each, about]) => (
                <option key={each} value={each}>
                  {each}: {about}
                </option>
              ))}
            </select>
          </label>
          <label className="line">
            Workspace: acme/main, acme/* for all of a tenant, * for the whole server
            <input
              className="field mono"
              list="scopes"
              value={scope ?? here}
              onChange={(event) => {
                setScope(event.target.value);
              }}
            />
            <datalist id="scopes">
              {[...known, ...tenants, "*"].map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          </label>
          <label className="line">
            Assets that it is limited to, if any
            <input
              className="field mono"
              placeholder="raw.*, +analytics.report, group:finance"
              value={assets}
              onChange={(event) => {
                setAssets(event.target.value);
              }}
            />
          </label>
          <label className="line">
            It expires
            <select
              className="field"
              value={expires}
              onChange={(event) => {
                setExpires(event.target.value);
              }}
            >
              {LENGTHS.map(([text]) => (
                <option key={text}>{text}</option>
              ))}
            </select>
          </label>
          <label className="row" style={{ fontSize: 13 }}>
            <input
              type="checkbox"
              checked={isService}
              onChange={(event) => {
                setService(event.target.checked);
              }}
            />
            A program uses it, not a person
          </label>
          {create.error === null ? null : <ProblemBox error={create.error} />}
        </div>
        <footer>
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" className="button primary" disabled={!isWhole || create.isPending}>
            Create the key
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** The key itself, which the server cannot show again. */
export function CreatedKey({ made, onClose }: { made: Schemas["CreatedKey"]; onClose: () => void }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(made.key);
      toast("The key is in the clipboard");
    } catch {
      toast("The browser does not let the page copy; mark the key and copy it by hand");
    }
  };
  return (
    <Dialog title={`The key of ${made.name}`} onClose={onClose} holds>
      <div className="content">
        <p className="notice">This is the only time that it is shown. The server keeps a hash of it and cannot show it again.</p>
        <div className="row">
          <input
            className="field mono grow"
            readOnly
            aria-label="The new key"
            value={made.key}
            onFocus={(event) => {
              event.target.select();
            }}
          />
          <button type="button" className="button" onClick={() => void copy()}>
            Copy
          </button>
        </div>
        <p className="muted" style={{ fontSize: 13 }}>
          Programs show it as bearer, browsers sign in with it, and commands take it from their environment:
        </p>
        <pre>{made.role === "worker" ? `servo worker --server ${location.origin} --key …` : `export SERVO_URL=${location.origin} SERVO_KEY=…\nservo run list`}</pre>
      </div>
      <footer>
        <button type="button" className="button primary" onClick={onClose}>
          I have kept it
        </button>
      </footer>
    </Dialog>
  );
}
