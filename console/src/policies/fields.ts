/** Converts between the policy of the API and the fields of the form. */
import type { NewPolicy, Policy, PolicyAction } from "./api";

export interface PolicyFields {
  name: string;
  description: string;
  priority: number;
  enabled: boolean;
  condition: string;
  action: PolicyAction;
  route_to: string;
  terminal: boolean;
  message: string;
}

const DEFAULT_PRIORITY = 100;

export function fieldsOf(policy: Policy | undefined): PolicyFields {
  return {
    name: policy?.name ?? "",
    description: policy?.description ?? "",
    priority: policy?.priority ?? DEFAULT_PRIORITY,
    enabled: policy?.enabled ?? true,
    condition: policy?.condition ?? "",
    action: policy?.action ?? "BLOCK",
    route_to: policy?.route_to ?? "",
    terminal: policy?.terminal ?? true,
    message: policy?.message ?? "",
  };
}

/** Converts the fields to a request body. `route_to` is sent only for the action ROUTE, `message` only for BLOCK. */
export function bodyOf({ description, action, route_to, message, ...fields }: PolicyFields): NewPolicy {
  return {
    ...fields,
    action,
    description: description.trim() || null,
    route_to: action === "ROUTE" ? route_to.trim() || null : null,
    message: action === "BLOCK" ? message.trim() || null : null,
  };
}
