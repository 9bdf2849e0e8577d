/** The user's accounts at MCP servers. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type OwnConnection = Schemas["OwnMcpConnection"];
export type ConnectionStatus = OwnConnection["status"];

const CONNECTIONS = ["connections"];

/** The MCP servers that need the user's account, by name. Their number is limited, so the list has no pages. */
export function useConnections() {
  return useQuery({
    queryKey: CONNECTIONS,
    queryFn: async () => (await dataOf(api.GET("/api/v1/mcp/connections"))).mcp_connections,
  });
}

export function useDisconnect() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (serverId: string) => dataOf(api.DELETE("/api/v1/mcp/connections/{server_id}", { params: { path: { server_id: serverId } } })),
    onSettled: () => client.invalidateQueries({ queryKey: CONNECTIONS }),
  });
}
