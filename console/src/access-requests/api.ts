/** Access requests: users ask for a model or a higher limit, and administrators decide. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

import type { ACCESS_SORTS } from "../sorts";

export { ACCESS_KINDS, ACCESS_STATUSES } from "./choices";

export type AccessRequest = Schemas["AccessRequest"];
export type NewAccessRequest = Schemas["NewAccessRequest"];
export type AccessApproval = Schemas["AccessApproval"];
export type AccessStatus = AccessRequest["status"];
export type AccessKind = AccessRequest["kind"];

export type AccessSort = (typeof ACCESS_SORTS)[number];

export const DEFAULT_SORT = "-created_at";
/** The orders of the user's own requests and of pending requests, and those of the decided requests of all users. */
export const SORTS: readonly AccessSort[] = ["-created_at", "created_at", "-limit_usd", "limit_usd"];
export const DECIDED_SORTS: readonly AccessSort[] = ["-created_at", "created_at"];

export const PAGE_SIZE = 50;
const OWN_REFRESH_MS = 15_000;
const PENDING_REFRESH_MS = 3_000;

/** A page of the user's own requests. */
export function useOwnRequests(status: AccessStatus | undefined, sort: AccessSort, page: number) {
  return useQuery({
    queryKey: ["access-requests", "own", status, sort, page],
    placeholderData: keepPreviousData,
    refetchInterval: OWN_REFRESH_MS,
    queryFn: () =>
      dataOf(api.GET("/api/access-requests", {
        params: { query: { ...(status !== undefined && { status }), sort, page, page_size: PAGE_SIZE } },
      })),
  });
}

/** A page of the requests of all users. Pending requests are loaded again every `refreshMs`. */
export function useAccessRequests(status: AccessStatus, page: number, refreshMs: number = PENDING_REFRESH_MS, sort: AccessSort = DEFAULT_SORT) {
  return useQuery({
    queryKey: ["access-requests", "all", status, sort, page],
    placeholderData: keepPreviousData,
    refetchInterval: status === "pending" ? refreshMs : false,
    queryFn: () => dataOf(api.GET("/api/admin/access-requests", { params: { query: { status, sort, page, page_size: PAGE_SIZE } } })),
  });
}

/** The first page of models that the user can request and whose name contains `search`. */
export function useRequestableModels(search: string) {
  return useQuery({
    queryKey: ["access-requests", "models", search],
    placeholderData: keepPreviousData,
    queryFn: async () =>
      (await dataOf(api.GET("/api/access-requests/models", { params: { query: { ...(search !== "" && { search }), page_size: PAGE_SIZE } } }))).items,
  });
}

function useRequestChange<Input, Output>(change: (input: Input) => Promise<Output>, alsoChanged: readonly string[] = []) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(["access-requests", ...alsoChanged].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

export function useCreateRequest() {
  return useRequestChange((body: NewAccessRequest) => dataOf(api.POST("/api/access-requests", { body })));
}

export function useWithdrawRequest() {
  return useRequestChange((id: string) =>
    dataOf(api.DELETE("/api/access-requests/{access_request_id}", { params: { path: { access_request_id: id } } })),
  );
}

export function useApproveRequest(id: string) {
  return useRequestChange(
    (body: AccessApproval) =>
      dataOf(api.POST("/api/admin/access-requests/{access_request_id}/approve", { params: { path: { access_request_id: id } }, body })),
    ["groups", "budgets", "usage-summary"],
  );
}

export function useDenyRequest(id: string) {
  return useRequestChange((reason: string | null) =>
    dataOf(api.POST("/api/admin/access-requests/{access_request_id}/deny", { params: { path: { access_request_id: id } }, body: { reason } })),
  );
}
