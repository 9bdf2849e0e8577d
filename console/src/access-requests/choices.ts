/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { AccessKind, AccessStatus } from "./api";

export const ACCESS_KINDS: readonly AccessKind[] = ["model", "limit"];
export const ACCESS_STATUSES: readonly AccessStatus[] = ["pending", "approved", "denied", "withdrawn"];
