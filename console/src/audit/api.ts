/** The audit chain: events, newest first. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type AuditEvent = Schemas["AuditEventShown"];

export const PAGE_SIZE = 100;

export interface AuditFilters {
  action?: string | undefined;
  actor_id?: string | undefined;
  resource_type?: string | undefined;
  resource_id?: string | undefined;
  request_id?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** Events from the newest on; each next page continues where the one before ended. */
export function useAuditEvents(filters: AuditFilters) {
  return useInfiniteQuery({
    queryKey: ["audit-events", "list", filters],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    queryFn: ({ pageParam }: { pageParam: string | undefined }): Promise<Schemas["AuditEventsPage"]> =>
      dataOf(api.GET("/v1/audit/events", {
        params: { query: { ...filters, order: "desc", limit: PAGE_SIZE, ...(pageParam === undefined ? {} : { cursor: pageParam }) } },
      })),
  });
}

/** All actions with what they mean. */
export function useAuditActions() {
  return useQuery({
    queryKey: ["audit-actions"],
    staleTime: Infinity,
    queryFn: async () => (await dataOf(api.GET("/v1/audit/actions"))).actions,
  });
}
