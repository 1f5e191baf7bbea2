// A button that changes something: whoever may not press it sees it all the same, with the reason.
import { useQuery } from "@tanstack/react-query";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { meQuery } from "../api/queries";
import { Empty, Panel } from "./Panel";

/** What the server asks of a caller, by the names that it uses itself. */
export type Permission =
  | "runs.trigger"
  | "runs.cancel"
  | "runs.retry"
  | "quarantine.review"
  | "admission.change"
  | "automation.operate"
  | "assets.deploy"
  | "partitions.change"
  | "settings.change"
  | "sql.run"
  | "automation.change"
  | "keys.manage"
  | "audit.read";

/** Why the viewer may not do something; none if they may, or as long as it is not known. */
export function useWhyNot(needs: Permission): string | undefined {
  const { data } = useQuery(meQuery);
  if (data === undefined || data.permissions.includes(needs)) return undefined;
  const roles = data.roles.length === 0 ? "no role" : `the role ${data.roles.join(", ")}`;
  return `You have ${roles} here, and this needs the permission ${needs}`;
}

export function Act({ needs, disabled, title, children, ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { needs: Permission }) {
  const why = useWhyNot(needs);
  return (
    <button type="button" {...rest} disabled={disabled === true || why !== undefined} title={why ?? title}>
      {children}
    </button>
  );
}

/** What only some may see: others are told so before the server has to refuse it. */
export function Needs({ permission, what, children }: { permission: Permission; what: string; children: ReactNode }) {
  const why = useWhyNot(permission);
  const { isPending } = useQuery(meQuery);
  if (isPending) return null;
  if (why === undefined) return <>{children}</>;
  return (
    <Panel label={what}>
      <Empty title={`You may not see this: ${what}`}>
        <p>{why}. An admin of the workspace can give it to you.</p>
      </Empty>
    </Panel>
  );
}
