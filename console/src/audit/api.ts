/** The audit log: events, newest first. */
import { type InfiniteData, keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ApiError } from "../api/errors";
import { auditTexts } from "../texts/audit";

export type AuditEvent = Schemas["AuditEventShown"];

export const PAGE_SIZE = 100;
const FOLLOW_MS = 3_000;
/** The maximum number of events on the first page, including new ones. If more arrive, the list is loaded again. */
const MAX_FIRST_PAGE = 500;

type EventsPage = Schemas["AuditEventsPage"];
type EventPages = InfiniteData<EventsPage, string | undefined>;

export interface AuditFilters {
  action?: string | undefined;
  actor_id?: string | undefined;
  resource_type?: string | undefined;
  resource_id?: string | undefined;
  request_id?: string | undefined;
  outcome?: string | undefined;
  tool?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

function listKey(filters: AuditFilters) {
  return ["audit-events", "list", filters];
}

/** Audit events, newest first, page by page. */
export function useAuditEvents(filters: AuditFilters) {
  return useInfiniteQuery({
    queryKey: listKey(filters),
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    queryFn: ({ pageParam }: { pageParam: string | undefined }): Promise<EventsPage> =>
      dataOf(api.GET("/v1/audit/events", {
        params: { query: { ...filters, order: "desc", limit: PAGE_SIZE, ...(pageParam === undefined ? {} : { cursor: pageParam }) } },
      })),
  });
}

/** The event with this sequence. The page needs it if the URL refers to an event that is not in the loaded part of the list. */
export function useAuditEvent(sequence: number | undefined) {
  return useQuery({
    queryKey: ["audit-events", "one", sequence],
    enabled: sequence !== undefined,
    staleTime: Infinity,
    queryFn: async () => {
      const { events: [event] } = await dataOf(api.GET("/v1/audit/events", { params: { query: { sequence, limit: 1 } } }));
      if (event === undefined) throw new ApiError(404, auditTexts.noEvent, null);
      return event;
    },
  });
}

/** Every few seconds while the page is visible, loads the events after the newest event of the list, and adds them to
 * the list. */
export function useFollowedEvents(filters: AuditFilters, follows: boolean) {
  const client = useQueryClient();
  const queryKey = listKey(filters);
  return useQuery({
    queryKey: ["audit-events", "tail", filters],
    enabled: follows,
    staleTime: 0,
    gcTime: 0,
    refetchInterval: FOLLOW_MS,
    queryFn: async (): Promise<number> => {
      const [first] = client.getQueryData<EventPages>(queryKey)?.pages ?? [];
      if (first === undefined) return 0;
      const newer = await dataOf(api.GET("/v1/audit/events", { params: { query: { cursor: first.tail_cursor, limit: PAGE_SIZE } } }));
      if (newer.has_more || first.events.length + newer.events.length > MAX_FIRST_PAGE) {
        await client.invalidateQueries({ queryKey, exact: true });
      } else if (newer.events.length > 0) {
        client.setQueryData<EventPages>(queryKey, (list) => list && withNewer(list, newer));
      }
      return newer.events.length;
    },
  });
}

/** Returns the list with the events of `newer` added at its start. `newer` is sorted oldest first. Events that the list
 * already contains are skipped. */
function withNewer(list: EventPages, newer: EventsPage): EventPages {
  const [first, ...others] = list.pages;
  if (first === undefined) return list;
  const last = first.events[0]?.sequence ?? 0;
  const added = newer.events.filter(({ sequence }) => sequence > last).reverse();
  if (added.length === 0) return list;
  return { ...list, pages: [{ ...first, events: [...added, ...first.events], tail_cursor: newer.tail_cursor }, ...others] };
}

/** All audit actions with their descriptions. */
export function useAuditActions() {
  return useQuery({
    queryKey: ["audit-actions"],
    staleTime: Infinity,
    queryFn: async () => (await dataOf(api.GET("/v1/audit/actions"))).actions,
  });
}
