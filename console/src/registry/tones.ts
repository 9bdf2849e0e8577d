import type { Tone } from "../parts/Badge";
import type { RiskTier, Status } from "./api";

export const TIER_TONES: Record<RiskTier, Tone> = {
  tier_1: "danger", tier_2: "warning", tier_3: "info", tier_4: "neutral", unclassified: "neutral",
};
export const STATUS_TONES: Record<Status, Tone> = {
  draft: "neutral", unclassified: "neutral", pending_validation: "info", in_validation: "info", validated: "success",
  needs_remediation: "warning", deprecated: "danger",
};
