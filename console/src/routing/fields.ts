/** The form's fields and the API's policy. */
import { linesOf, textOf } from "../parts/lines";
import type { CapAction, Capability, NewRoutingPolicy, RoutingPolicy, Strategy } from "./api";

/** Fields have the names of the API's, so that its messages find them. Numbers are texts, empty for none. */
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
  /** In dollars for a million tokens, as the catalog's prices. */
  max_cost_per_1k_input_tokens_usd: string;
  fallback_chain: { model: string; weight: string }[];
  max_cost_per_request_usd: string;
  action_on_exceed: CapAction;
  latency_budget_ms: string;
  cache_ttl_seconds: string;
}

/** The API's price is for a thousand tokens, the form's for a million. */
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

/** The fields as the API takes them. The order of the chain is its priority. */
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

/** The provider and the model of `provider/model-id`. Ids of models may contain slashes. */
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

/** Without a trace of binary fractions. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
