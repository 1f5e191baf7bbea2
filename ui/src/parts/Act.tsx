// A button that changes something: whoever may not press it sees it all the same, with the reason.
import { useQuery } from "@tanstack/react-query";
import type { ButtonHTMLAttributes } from "react";
import { meQuery } from "../api/queries";

/** What the server asks of a caller, by the names that it uses itself. */
export type Permission =
  | "runs.trigger"
  | "runs.cancel"
  | "runs.retry"
  | "quarantine.review"
  | "admission.change"
  | "automation.operate"
  | "assets.deploy"
  | "settings.change"
  | "sql.run";

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
