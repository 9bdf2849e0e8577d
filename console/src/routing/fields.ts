/** Converts between the routing policy of the API and the fields of the form. */
import { linesOf, textOf } from "../parts/lines";
import type { CapAction, Capability, NewRoutingPolicy, RoutingPolicy, Strategy } from "./api";

/** The fields have the names of the API's fields, so that error messages of the API are shown at them. Numbers are
 * texts. An empty text means no value. */
export interface PolicyFields {
  name: string;
  description: string;
  enabled: boolean;
  strategy: Strategy;
  group_ids: string[];
  min_context_window: string;
  required_capabilities: Capability[];
  excluded_models: string;
  included_providers: string[];
  /** In dollars per million tokens, like the prices on the models page. */
  max_cost_per_1k_input_tokens_usd: string;
  fallback_chain: { model: string; weight: string }[];
  max_cost_per_request_usd: string;
  action_on_exceed: CapAction;
  latency_budget_ms: string;
  cache_ttl_seconds: string;
}

/** The API's price is per thousand tokens, the form's price per million tokens. */
const THOUSANDS = 1000;

export function fieldsOf(policy: RoutingPolicy | undefined): PolicyFields {
  const filters = policy?.model_filters;
  const price = filters?.max_cost_per_1k_input_tokens_usd;
  return {
    name: policy?.name ?? "",
    description: policy?.description ?? "",
    enabled: policy?.enabled ?? true,
    strategy: policy?.strategy ?? "cost_optimized",
    group_ids: policy?.group_ids ?? [],
    min_context_window: textOfNumber(filters?.min_context_window),
    required_capabilities: filters?.required_capabilities ?? [],
    excluded_models: textOf(filters?.excluded_models),
    included_providers: filters?.included_providers ?? [],
    max_cost_per_1k_input_tokens_usd: textOfNumber(price && rounded(price * THOUSANDS)),
    fallback_chain: [...(policy?.fallback_chain ?? [])]
      .sort((one, other) => one.priority - other.priority)
      .map(({ provider, model_id, cost_weight }) => ({ model: `${provider}/${model_id}`, weight: String(cost_weight) })),
    max_cost_per_request_usd: textOfNumber(policy?.cost_cap?.max_cost_per_request_usd),
    action_on_exceed: policy?.cost_cap?.action_on_exceed ?? "block",
    latency_budget_ms: textOfNumber(policy?.latency_budget_ms),
    cache_ttl_seconds: textOfNumber(policy?.cache_ttl_seconds),
  };
}

/** Converts the fields to a request body. The position in the chain is the priority. */
export function bodyOf(fields: PolicyFields): NewRoutingPolicy {
  const { name, enabled, strategy, group_ids, required_capabilities, included_providers } = fields;
  const price = numberOf(fields.max_cost_per_1k_input_tokens_usd);
  return {
    name, description: fields.description.trim() || null, enabled, strategy, group_ids,
    model_filters: {
      min_context_window: numberOf(fields.min_context_window),
      required_capabilities,
      excluded_models: linesOf(fields.excluded_models),
      included_providers,
      max_cost_per_1k_input_tokens_usd: price && rounded(price / THOUSANDS),
    },
    fallback_chain: fields.fallback_chain.map(({ model, weight }, at) => ({ ...namesOf(model), priority: at, cost_weight: numberOf(weight) ?? 1 })),
    cost_cap: fields.max_cost_per_request_usd === "" ? null : {
      max_cost_per_request_usd: fields.max_cost_per_request_usd, action_on_exceed: fields.action_on_exceed,
    },
    latency_budget_ms: numberOf(fields.latency_budget_ms),
    cache_ttl_seconds: numberOf(fields.cache_ttl_seconds),
  };
}

/** Splits `provider/model-id` at the first slash, because model ids can contain slashes. */
function namesOf(name: string): { provider: string; model_id: string } {
  const [provider = "", ...rest] = name.trim().split("/");
  return { provider, model_id: rest.join("/") };
}

function textOfNumber(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}

function numberOf(text: string): number | null {
  return text === "" ? null : Number(text);
}

/** Removes rounding errors of floating-point numbers. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
