/** Access requests: users ask for a model or a higher limit, and administrators decide. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export { ACCESS_KINDS, ACCESS_STATUSES } from "./choices";

export type AccessRequest = Schemas["AccessRequest"];
export type NewAccessRequest = Schemas["NewAccessRequest"];
export type AccessApproval = Schemas["AccessApproval"];
export type AccessStatus = AccessRequest["status"];
export type AccessKind = AccessRequest["kind"];

export const PAGE_SIZE = 50;
const OWN_REFRESH_MS = 15_000;
const PENDING_REFRESH_MS = 3_000;

/** A page of the user's own requests, newest first. */
export function useOwnRequests(status: AccessStatus | undefined, page: number) {
  return useQuery({
    queryKey: ["access-requests", "own", status, page],
    placeholderData: keepPreviousData,
    refetchInterval: OWN_REFRESH_MS,
    queryFn: () =>
      dataOf(api.GET("/api/access-requests", {
        params: { query: { ...(status !== undefined && { status }), page, page_size: PAGE_SIZE } },
      })),
  });
}

/** A page of the requests of all users, newest first. Pending ones are loaded again every few seconds. */
export function useAccessRequests(status: AccessStatus, page: number, refreshMs: number = PENDING_REFRESH_MS) {
  return useQuery({
    queryKey: ["access-requests", "all", status, page],
    placeholderData: keepPreviousData,
    refetchInterval: status === "pending" ? refreshMs : false,
    queryFn: () => dataOf(api.GET("/api/admin/access-requests", { params: { query: { status, page, page_size: PAGE_SIZE } } })),
  });
}

/** The first models that the user can ask for, of those whose name contains `search`. */
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
