/** MCP servers and their tools: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ifMatch, useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { Reason } from "../switches/api";
import type { ToolStatus } from "./choices";

export type Server = Schemas["McpServer"];
export type NewServer = Schemas["NewMcpServer"];
export type ServerUpdate = Schemas["McpServerUpdate"];
export type StdioCommand = Schemas["StdioCommand"];
export type ServerConnection = Schemas["McpConnection"];
export type ListedTool = Schemas["McpToolOfServer"];
export type Tool = Schemas["McpTool"];
export type Propagation = Schemas["SwitchedMcpTool"]["propagation"];

/** The maximum number of servers of an organization, and of one page of their list. */
const PENDING_REFRESH_MS = 1_000;
const RECENT_CHANGES = 50;

/** A page of the servers, sorted by name. */
export function useServers(search: string | undefined, page: number) {
  const query = { search, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["mcp", "servers", query],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { mcp_servers: rows, total } = await dataOf(api.GET("/api/v1/admin/mcp/servers", { params: { query } }));
      return { rows, total };
    },
  });
}

/** The commands that the operator offers to the organization. */
export function useStdioCommands(): readonly StdioCommand[] | undefined {
  const { data } = useQuery({
    queryKey: ["mcp", "stdio-commands"],
    queryFn: async () => (await dataOf(api.GET("/api/v1/admin/mcp/stdio-commands"))).stdio_commands,
  });
  return data;
}

/** A page of the users who have connected an account at a server, oldest first. */
export function useServerConnections(serverId: string, page: number) {
  return useQuery({
    queryKey: ["mcp", "servers", "connections", serverId, page],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const params = { path: { server_id: serverId }, query: { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE } };
      const { mcp_connections: rows, total } = await dataOf(api.GET("/api/v1/admin/mcp/servers/{server_id}/connections", { params }));
      return { rows, total };
    },
  });
}

export function useRemoveConnection() {
  return useChange(({ server_id, id: connection_id }: ServerConnection) =>
    dataOf(api.DELETE("/api/v1/admin/mcp/servers/{server_id}/connections/{connection_id}", { params: { path: { server_id, connection_id } } })),
  );
}

export function useServer(id: string | undefined) {
  return useQuery({
    queryKey: ["mcp", "servers", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/v1/admin/mcp/servers/{server_id}", { params: { path: { server_id: id ?? "" } } })),
  });
}

export interface ToolFilters {
  server?: string | undefined;
  status?: ToolStatus | undefined;
  search?: string | undefined;
}

/** A page of the tools of all servers, sorted by the names of server and tool. */
export function useTools({ server, status, search }: ToolFilters, page: number) {
  const query = { server_id: server, status, search, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["mcp", "tools", query],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { mcp_tools: rows, total } = await dataOf(api.GET("/api/v1/admin/mcp/tools", { params: { query } }));
      return { rows, total };
    },
  });
}

/** One tool with its definitions. It is loaded again only after a change in this page. The dialog keeps the definition that
 * it shows. */
export function useTool(serverId: string, toolId: string) {
  return useQuery({
    queryKey: ["mcp", "tools", "one", serverId, toolId],
    staleTime: Infinity,
    gcTime: 0,
    queryFn: () =>
      dataOf(api.GET("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}", { params: { path: { server_id: serverId, tool_id: toolId } } })),
  });
}

function useChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: ["mcp"] }) });
}

export function useCreateServer() {
  return useChange((body: NewServer) => dataOf(api.POST("/api/v1/admin/mcp/servers", { body })));
}

export function useUpdateServer(server: Server) {
  const header = useIfMatch(server);
  return useChange((body: ServerUpdate) =>
    dataOf(api.PATCH("/api/v1/admin/mcp/servers/{server_id}", { params: { path: { server_id: server.id }, header }, body })),
  );
}

export function useSetServerEnabled(id: string) {
  return useChange((enabled: boolean) =>
    dataOf(api.PATCH("/api/v1/admin/mcp/servers/{server_id}", { params: { path: { server_id: id } }, body: { enabled } })),
  );
}

export function useDeleteServer(id: string) {
  return useChange(() => dataOf(api.DELETE("/api/v1/admin/mcp/servers/{server_id}", { params: { path: { server_id: id } } })));
}

/** Reads the tools of a server. */
export function useRefresh(id: string) {
  return useChange(() => dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/refresh", { params: { path: { server_id: id } } })));
}

/** Approves or rejects the definition of a tool. The API refuses this if the definition or the tool has changed. The
 * result does not wait for the lists to be loaded again, because the dialog closes at once. */
export function useDecide({ id, server_id, hash, updated_at }: Tool) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (approves: boolean) => {
      const header = ifMatch(updated_at);
      const path = { server_id, tool_id: id };
      return approves
        ? dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/approve", { params: { path, header }, body: { hash } }))
        : dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/reject", { params: { path, header }, body: { hash } }));
    },
    onSettled: () => void client.invalidateQueries({ queryKey: ["mcp"] }),
  });
}

export function useSetApprovalRequired({ id, server_id, updated_at }: Tool) {
  return useChange((approval_required: boolean) =>
    dataOf(api.PATCH("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}", {
      params: { path: { server_id, tool_id: id }, header: ifMatch(updated_at) }, body: { approval_required },
    })),
  );
}

/** The server or the tool of a kill switch. */
export type SwitchTarget = { id: string; name: string; switched_off_at: string | null; server_id?: string };

/** Engages the kill switch with a reason, or releases it without one. */
export function useMcpSwitch({ id, server_id: serverId }: SwitchTarget) {
  return useChange(async (reason: Reason | null): Promise<Propagation> => {
    const { propagation } = await (serverId === undefined ? switchServer(id, reason) : switchTool({ server_id: serverId, tool_id: id }, reason));
    return propagation;
  });
}

function switchServer(id: string, reason: Reason | null) {
  const path = { server_id: id };
  return reason === null
    ? dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/enable", { params: { path } }))
    : dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/disable", { params: { path }, body: { reason } }));
}

function switchTool(path: { server_id: string; tool_id: string }, reason: Reason | null) {
  return reason === null
    ? dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/enable", { params: { path } }))
    : dataOf(api.POST("/api/v1/admin/mcp/servers/{server_id}/tools/{tool_id}/disable", { params: { path }, body: { reason } }));
}

/** The propagation of the newest change of a switch. `first` is that of the response to the change. The query repeats
 * until all workers have confirmed the change. */
export function useSwitchPropagation(id: string, first: Propagation): Pick<Propagation, "confirmed" | "total" | "pending"> {
  const { data } = useQuery({
    queryKey: ["mcp", "propagation", id],
    enabled: first.pending.length > 0,
    staleTime: 0,
    gcTime: 0,
    refetchInterval: ({ state }) => (state.data?.pending.length === 0 ? false : PENDING_REFRESH_MS),
    queryFn: async () => {
      const report = await dataOf(api.GET("/api/v1/admin/kill-switch/propagation", { params: { query: { limit: RECENT_CHANGES } } }));
      return report.changes.find(({ topic, targets }) => topic === "mcp_switch" && targets.includes(id)) ?? first;
    },
  });
  return data ?? first;
}
