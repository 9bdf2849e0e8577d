/** What a filter of the page can be. Apart from the queries, so that the paths need no more than this. */
import type { Strategy } from "./api";

export const STRATEGIES = [
  "cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin", "manual_fallback",
] as const satisfies readonly Strategy[];
