/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { AccessKind, AccessStatus } from "./api";

export const ACCESS_KINDS: readonly AccessKind[] = ["model", "limit"];
export const ACCESS_STATUSES: readonly AccessStatus[] = ["pending", "approved", "denied", "withdrawn"];
