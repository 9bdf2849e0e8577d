/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { RecordStatus } from "./api";

export const STATUSES: readonly RecordStatus[] = ["success", "refused", "error", "cancelled", "interrupted"];
