/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { EventType } from "./api";

/** The events that a webhook can subscribe to. `webhook_test` is sent on request. */
export const EVENT_TYPES: readonly EventType[] = [
  "new_conversation", "dlp_trigger", "quota_exceeded", "usage_threshold", "bundle_state_change", "invoice_generated",
];
export const SORTS = ["created_at", "-created_at", "name", "-name"] as const;
export const DEFAULT_SORT = "-created_at";
