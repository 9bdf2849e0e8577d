/** The tools that the user may call. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { PAGE_SIZE } from "../parts/ListPanel";

export type CallableTool = Schemas["CallableTool"];

export interface ToolFilters {
  server?: string | undefined;
  search?: string | undefined;
}

/** A page of the user's tools, by server and name, and the names of all their servers. */
export function useCallableTools(filters: ToolFilters, page: number) {
  const query = { ...filters, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["callable-tools", query],
    placeholderData: keepPreviousData,
    queryFn: () => dataOf(api.GET("/api/v1/mcp/tools", { params: { query } })),
  });
}
