/** Usage records and what belongs to them. */
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ApiError } from "../api/errors";
import { useRights } from "../api/queries";
import type { paths } from "../api/schema";

export { STATUSES } from "./choices";

export type UsageRecord = Schemas["UsageRecord"];
export type AuditEvent = Schemas["AuditEventShown"];
type ListQuery = NonNullable<paths["/api/v1/usage/records"]["get"]["parameters"]["query"]>;
export type RecordStatus = NonNullable<ListQuery["status"]>;
export type Period = "hour" | "day" | "week" | "month" | "all";

export const PAGE_SIZE = 50;
const REFRESH_MS = 15_000;
const FIRST_RECORD_MS = 2_000;
const HOUR_MS = 3_600_000;
const PERIOD_MS: Record<Period, number | null> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS, month: 720 * HOUR_MS, all: null };

export interface RecordFilters {
  period: Period;
  model?: string | undefined;
  provider?: string | undefined;
  user?: string | undefined;
  key?: string | undefined;
  status?: RecordStatus | undefined;
  request?: string | undefined;
}

/** A page of records, newest first. The first page follows new ones. */
export function useRecords(filters: RecordFilters, page: number, size: number = PAGE_SIZE) {
  return useQuery({
    queryKey: ["usage-records", filters, page, size],
    placeholderData: keepPreviousData,
    refetchInterval: page === 1 ? REFRESH_MS : false,
    queryFn: () =>
      dataOf(api.GET("/api/v1/usage/records", {
        params: { query: { ...queryOf(filters), limit: size, offset: (page - 1) * size } },
      })),
  });
}

function queryOf({ period, model, provider, user, key, status, request }: RecordFilters): ListQuery {
  const milliseconds = PERIOD_MS[period];
  const query: ListQuery = { model_id: model, provider, user_id: user, api_key_id: key, status, request_id: request };
  if (milliseconds !== null) query.from = new Date(Date.now() - milliseconds).toISOString();
  return query;
}

/** One record: from a list that is on the screen, else by its id. Null if there is none. */
export function useRecord(id: string, listed: UsageRecord | undefined) {
  const client = useQueryClient();
  return useQuery({
    queryKey: ["usage-record", id],
    initialData: listed ?? client.getQueryData<UsageRecord | null>(["usage-record", id]),
    staleTime: Infinity,
    queryFn: async (): Promise<UsageRecord | null> => {
      try {
        return await dataOf(api.GET("/api/v1/usage/records/{record_id}", { params: { path: { record_id: id } } }));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });
}

/** The first record of a key; asked for every two seconds until there is one. */
export function useFirstRecord(keyId: string | undefined) {
  return useQuery({
    queryKey: ["usage-records", "first", keyId],
    enabled: keyId !== undefined,
    refetchInterval: ({ state }) => (state.data == null ? FIRST_RECORD_MS : false),
    queryFn: async (): Promise<UsageRecord | null> => {
      const query = { api_key_id: keyId, limit: 1 };
      const { records } = await dataOf(api.GET("/api/v1/usage/records", { params: { query } }));
      return records[0] ?? null;
    },
  });
}

/** The audit events of a request, for those who may read them. */
export function useAuditEvents(requestId: string) {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["audit-events", requestId],
    enabled: seesAll,
    queryFn: () => dataOf(api.GET("/v1/audit/events", { params: { query: { request_id: requestId, limit: 20 } } })),
  });
}
