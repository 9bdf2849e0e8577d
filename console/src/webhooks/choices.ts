/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { EventType } from "./api";

/** The events that a webhook can subscribe to. The test event `webhook_test` is sent without a subscription. */
export const EVENT_TYPES: readonly EventType[] = [
  "new_conversation", "dlp_trigger", "quota_exceeded", "usage_threshold", "bundle_state_change", "invoice_generated",
];
export const SORTS = ["created_at", "-created_at", "name", "-name"] as const;
export const DEFAULT_SORT = "-created_at";
