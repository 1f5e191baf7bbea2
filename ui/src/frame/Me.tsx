import { useQuery } from "@tanstack/react-query";
import { meQuery } from "../api/queries";

/** Who the server takes this browser for. The owner of a server on this machine need not be told. */
export function Me() {
  const { data } = useQuery(meQuery);
  if (data === undefined || data.principal === "user:local") return null;
  const roles = data.roles.join(", ");
  return (
    <span className="muted ellipsis hide-small" style={{ fontSize: 13, maxWidth: 220 }} title={`${data.principal}${roles === "" ? "" : `, ${roles}`}`}>
      {data.principal.replace(/^user:/, "")}
      {roles === "" ? "" : ` (${roles})`}
    </span>
  );
}
