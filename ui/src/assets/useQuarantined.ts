import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { quarantineQuery } from "../api/queries";

/** Assets with data that waits for review. */
export function useQuarantined(): ReadonlySet<string> {
  const { data } = useQuery(quarantineQuery);
  return useMemo(() => new Set(data?.items.map((item) => item.asset_key)), [data]);
}
