import type { Tone } from "../parts/Badge";
import type { PolicyAction } from "./api";

export const TONES: Record<PolicyAction, Tone> = {
  ALLOW: "success", BLOCK: "danger", REQUIRE_APPROVAL: "warning", ROUTE: "info", LOG: "neutral",
};
