/** The number of tools that wait for a decision. The overview loads this module, so it is separate. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";

const REFRESH_MS = 30_000;

/** The number of tools that wait for a decision, or undefined while it is loading. */
export function useWaitingTools(): number | undefined {
  const { data } = useQuery({
    queryKey: ["mcp", "tools", "waiting"],
    refetchInterval: REFRESH_MS,
    queryFn: async () => (await dataOf(api.GET("/api/v1/admin/mcp/tools", { params: { query: { status: "quarantined", limit: 1 } } }))).total,
  });
  return data;
}
