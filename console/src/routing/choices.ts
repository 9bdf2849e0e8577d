/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { Strategy } from "./api";

export const STRATEGIES = [
  "cost_optimized", "quality_optimized", "latency_optimized", "balanced", "round_robin", "manual_fallback",
] as const satisfies readonly Strategy[];
