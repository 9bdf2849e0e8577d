/** The actions of policies. The router loads this module at the start, so it imports no queries. */
import type { PolicyAction } from "./api";

export const ACTIONS = ["ALLOW", "BLOCK", "REQUIRE_APPROVAL", "ROUTE", "LOG"] as const satisfies readonly PolicyAction[];
