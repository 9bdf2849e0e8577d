/** The sort fields of the lists, in both directions. The router loads this module at startup, so it must not import
 * pages. */

function inBothDirections<const Field extends string>(...fields: readonly Field[]) {
  return fields.flatMap((field) => [field, `-${field}`] as const) as readonly (Field | `-${Field}`)[];
}

export const KEY_SORTS = inBothDirections("created_at", "description", "owner", "last_used", "expires_at", "month_cost_usd");
export const USER_SORTS = inBothDirections("created_at", "name", "role", "last_login_at");
export const DLP_RULE_SORTS = inBothDirections("created_at", "detector_name", "detector_type", "entity_type", "action_tier");
export const PATTERN_SORTS = inBothDirections("created_at", "name", "entity_type");
export const SUPPRESSION_SORTS = inBothDirections("created_at", "pattern_id");
export const FILTER_SORTS = inBothDirections("priority", "name", "created_at");
export const POLICY_SORTS = inBothDirections("priority", "name", "created_at");
export const ROUTING_SORTS = inBothDirections("created_at", "name", "strategy");
export const PROVIDER_SORTS = inBothDirections("id", "name", "kind", "last_health_check", "created_at");
export const MODEL_SORTS = inBothDirections("created_at", "model_id", "provider", "context_window", "cost_per_input_token", "cost_per_output_token");
export const REGISTRY_SORTS = inBothDirections("created_at", "model_id", "provider", "risk_tier", "validation_status", "owner", "updated_at");
export const CLIENT_SORTS = inBothDirections("created_at", "name", "last_used");
export const BUDGET_SORTS = inBothDirections("created_at", "scope_type", "period", "limit_usd");
export const RECORD_SORTS = inBothDirections("timestamp", "cost_usd", "tokens", "latency_ms");
export const OUTPOST_SORTS = inBothDirections("seen_at", "outpost_id", "state", "policy_version", "certificate_ends_at", "records_stored");
export const ACCESS_SORTS = inBothDirections("created_at", "limit_usd");
export const APPROVAL_SORTS = inBothDirections("created_at", "expires_at");
