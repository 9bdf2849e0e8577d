/** Converts between the model alias of the API and the fields of the form. */
import type { Balance, Deployment, ModelAlias, NewModelAlias } from "./api";

/** The fields of a deployment. Numbers are texts. An empty text means no value. */
export interface DeploymentFields {
  model: string;
  credential: string;
  role: Deployment["role"];
  weight: string;
  tier: string;
  share: string;
  max_concurrent_requests: string;
  requests_per_minute: string;
  tokens_per_minute: string;
}

export interface AliasFields {
  name: string;
  description: string;
  enabled: boolean;
  balance: Balance;
  sticky: boolean;
  deployments: DeploymentFields[];
}

export const NEW_DEPLOYMENT: DeploymentFields = {
  model: "", credential: "", role: "live", weight: "1", tier: "0", share: "1", max_concurrent_requests: "", requests_per_minute: "", tokens_per_minute: "",
};

export function fieldsOf(alias: ModelAlias | undefined): AliasFields {
  return {
    name: alias?.name ?? "",
    description: alias?.description ?? "",
    enabled: alias?.enabled ?? true,
    balance: alias?.balance ?? "weighted",
    sticky: alias?.sticky ?? false,
    deployments: alias?.deployments.map((deployment) => ({
      model: `${deployment.provider}/${deployment.model_id}`,
      credential: deployment.credential ?? "",
      role: deployment.role,
      weight: String(deployment.weight),
      tier: String(deployment.tier),
      share: String(deployment.share),
      max_concurrent_requests: textOf(deployment.max_concurrent_requests),
      requests_per_minute: textOf(deployment.requests_per_minute),
      tokens_per_minute: textOf(deployment.tokens_per_minute),
    })) ?? [NEW_DEPLOYMENT],
  };
}

/** Converts the fields to a request body. A deployment has only the fields of its role. */
export function bodyOf(fields: AliasFields): NewModelAlias {
  return {
    name: fields.name.trim(),
    description: fields.description.trim() || null,
    enabled: fields.enabled,
    balance: fields.balance,
    sticky: fields.sticky && fields.balance === "weighted",
    deployments: fields.deployments.map((deployment) => {
      const [provider = "", ...rest] = deployment.model.trim().split("/");
      const named = { provider, model_id: rest.join("/"), credential: deployment.credential.trim() || null, role: deployment.role };
      if (deployment.role === "shadow") return { ...named, share: Number(deployment.share) } as NewModelAlias["deployments"][number];
      return {
        ...named,
        weight: Number(deployment.weight),
        tier: Number(deployment.tier),
        max_concurrent_requests: numberOf(deployment.max_concurrent_requests),
        requests_per_minute: numberOf(deployment.requests_per_minute),
        tokens_per_minute: numberOf(deployment.tokens_per_minute),
      } as NewModelAlias["deployments"][number];
    }),
  };
}

function textOf(value: number | null): string {
  return value === null ? "" : String(value);
}

function numberOf(text: string): number | null {
  return text === "" ? null : Number(text);
}
