/** The values of the page's filters. The router loads this module at the start, so it imports no queries. */
import type { RiskTier, Status } from "./api";

export const STATUSES = [
  "draft", "unclassified", "pending_validation", "in_validation", "validated", "needs_remediation", "deprecated",
] as const satisfies readonly Status[];
export const TIERS = ["tier_1", "tier_2", "tier_3", "tier_4", "unclassified"] as const satisfies readonly RiskTier[];
