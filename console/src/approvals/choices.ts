/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { ApprovalStatus } from "./api";

export const STATUSES: readonly ApprovalStatus[] = ["pending", "approved", "denied", "expired", "cancelled"];
