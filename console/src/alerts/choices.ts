/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { Metric } from "./api";

export const METRICS: readonly Metric[] = ["cost", "error_rate", "latency_p95", "dlp_trigger_count", "blocked_request_count"];
export const SORTS = ["created_at", "-created_at", "name", "-name", "last_triggered_at", "-last_triggered_at"] as const;
export const DEFAULT_SORT = "-created_at";
