/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { ApprovalStatus } from "./api";

export const STATUSES: readonly ApprovalStatus[] = ["pending", "approved", "denied", "expired", "cancelled"];
