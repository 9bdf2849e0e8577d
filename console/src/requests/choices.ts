/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { RecordStatus } from "./api";

export const STATUSES: readonly RecordStatus[] = ["success", "refused", "error", "cancelled", "interrupted"];
