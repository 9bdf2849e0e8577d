/** Approvals: requests that wait for a person. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { APPROVAL_SORTS } from "../sorts";

export { STATUSES } from "./choices";

export type Approval = Schemas["Approval"];
export type ApprovalStatus = Approval["status"];

export const PAGE_SIZE = 50;
export const REFRESH_MS = 3_000;

export type Sort = (typeof APPROVAL_SORTS)[number];

export const DEFAULT_SORT = "-created_at";
/** The sort orders of decided approvals, and those of pending ones. */
export const SORTS: readonly Sort[] = ["-created_at", "created_at"];
export const PENDING_SORTS: readonly Sort[] = [...SORTS, "expires_at"];

/** A page of approvals. Pending approvals are loaded again every few seconds, because callers wait for the decision. */
export function useApprovals(status: ApprovalStatus | undefined, page: number, refreshMs: number = REFRESH_MS, sort: Sort = DEFAULT_SORT) {
  return useQuery({
    queryKey: ["approvals", status, page, sort],
    placeholderData: keepPreviousData,
    refetchInterval: status === "pending" ? refreshMs : false,
    queryFn: () =>
      dataOf(api.GET("/api/admin/approvals", {
        params: { query: { ...(status === undefined ? {} : { status }), page, page_size: PAGE_SIZE, sort } },
      })),
  });
}

export function useDecision() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, approve, reason }: { id: string; approve: boolean; reason: string | null }) => {
      const options = { params: { path: { approval_id: id } }, body: { reason } };
      return dataOf(approve
        ? api.POST("/api/admin/approvals/{approval_id}/approve", options)
        : api.POST("/api/admin/approvals/{approval_id}/deny", options));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["approvals"] }),
  });
}
