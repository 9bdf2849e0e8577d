/** Usage records, and their audit events and DLP events: queries. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ApiError } from "../api/errors";
import { useRights } from "../api/queries";
import type { paths } from "../api/schema";
import type { RECORD_SORTS } from "../sorts";

export { STATUSES } from "./choices";

export type UsageRecord = Schemas["UsageRecord"];
export type AuditEvent = Schemas["AuditEventShown"];
type ListQuery = NonNullable<paths["/api/v1/usage/records"]["get"]["parameters"]["query"]>;
export type RecordStatus = NonNullable<ListQuery["status"]>;
/** `custom` is the time between `from` and `to`. */
export type Period = "hour" | "day" | "week" | "month" | "all" | "custom";
export type UsageRecordDetails = Schemas["UsageRecordDetails"];
export type DlpEvent = Schemas["DlpEvent"];

export const PAGE_SIZE = 50;
const REFRESH_MS = 15_000;
const FIRST_RECORD_MS = 2_000;
const HOUR_MS = 3_600_000;
const PERIOD_MS: Record<Period, number | null> = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS, month: 720 * HOUR_MS, all: null, custom: null };

export interface RecordFilters {
  period: Period;
  /** The times of a custom period, in ISO 8601. */
  from?: string | undefined;
  to?: string | undefined;
  model?: string | undefined;
  provider?: string | undefined;
  user?: string | undefined;
  key?: string | undefined;
  status?: RecordStatus | undefined;
  request?: string | undefined;
}

export type Sort = (typeof RECORD_SORTS)[number];

export const DEFAULT_SORT = "-timestamp";

/** A page of records. The first page of the newest records is loaded again regularly, so that it shows new ones. In other
 * orders the server reads all matching records, so the page is not loaded again. */
export function useRecords(filters: RecordFilters, page: number, size: number = PAGE_SIZE, sort: Sort = DEFAULT_SORT) {
  return useQuery({
    queryKey: ["usage-records", filters, page, size, sort],
    placeholderData: keepPreviousData,
    refetchInterval: page === 1 && sort === DEFAULT_SORT ? REFRESH_MS : false,
    queryFn: () =>
      dataOf(api.GET("/api/v1/usage/records", {
        params: { query: { ...queryOf(filters), sort, limit: size, offset: (page - 1) * size } },
      })),
  });
}

function queryOf({ period, from, to, model, provider, user, key, status, request }: RecordFilters): ListQuery {
  const milliseconds = PERIOD_MS[period];
  const query: ListQuery = { model_id: model, provider, user_id: user, api_key_id: key, status, request_id: request };
  if (milliseconds !== null) query.from = new Date(Date.now() - milliseconds).toISOString();
  if (period === "custom" && from !== undefined) query.from = from;
  if (period === "custom" && to !== undefined) query.to = to;
  return query;
}

/** A record with its attempts. The data is null if the record does not exist. */
export function useRecord(id: string) {
  return useQuery({
    queryKey: ["usage-record", id],
    staleTime: Infinity,
    queryFn: async (): Promise<UsageRecordDetails | null> => {
      try {
        return await dataOf(api.GET("/api/v1/usage/records/{record_id}", { params: { path: { record_id: id } } }));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });
}

/** The newest record of a key. The query repeats every two seconds until there is a record. */
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

/** The maximum number of DLP events that are shown for a request. */
const MAX_EVENTS = 50;

/** The DLP events of a request, for those who may read them. */
export function useDlpEvents(record: UsageRecord) {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["dlp-events", record.id],
    enabled: seesAll,
    queryFn: () => {
      // A client can use the same request id twice, so also filter by time: DLP events have the timestamp of their
      // record.
      const to = new Date(Date.parse(record.timestamp) + 1).toISOString();
      const query = { request_id: record.request_id, from: record.timestamp, to, page_size: MAX_EVENTS };
      return dataOf(api.GET("/api/v1/dlp/events", { params: { query } }));
    },
  });
}
