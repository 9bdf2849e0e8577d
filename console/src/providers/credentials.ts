/** The credentials of one provider: queries and changes. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ifMatch } from "../api/versions";
import { type CredentialField, fieldsOf, type Kind, KINDS, type Provider, SECRETS, useProviderChange, type Way, WAYS } from "./api";

export type Credential = Schemas["ProviderCredential"];
export type CredentialState = Credential["state"];
export type Secret = Schemas["SecretFields"];

export const STATES = ["active", "draining", "disabled"] as const satisfies readonly CredentialState[];
/** The fields that each credential has its own value of. */
const OWN: readonly CredentialField[] = [...SECRETS, "cloud_access_key_id"];

/** The ways of authentication between which a credential of this provider can choose. The first is the default. Without
 * the ids of an application, its secret cannot be used. */
export function waysOf({ kind, config }: Provider): readonly Way[] {
  const ways = Object.keys(WAYS[kind as Kind] ?? {}) as Way[];
  const others = ways.filter((way) => way !== "application");
  const hasApplication = config.entra_tenant_id != null && config.entra_client_id != null;
  return hasApplication && ways.includes("application") ? ["application", ...others] : others;
}

/** The fields of one credential of a provider of this kind. `way`: the way of authentication, if the kind has several. */
export function secretFieldsOf(kind: string, way: Way | undefined): readonly CredentialField[] {
  const fields: readonly CredentialField[] = kind in KINDS ? fieldsOf(kind as Kind, way) : ["api_key"];
  return fields.filter((name) => OWN.includes(name));
}

export function isOptionalSecret(kind: string, name: CredentialField): boolean {
  return kind === "bedrock" && name === "cloud_session_token";
}

const LIST = "/api/admin/providers/{provider_id}/credentials";
const ONE = "/api/admin/providers/{provider_id}/credentials/{label}";

/** The credentials of a provider. Without an id, nothing is loaded. */
export function useCredentials(id: string | undefined) {
  return useQuery({
    queryKey: ["providers", "credentials", id],
    enabled: id !== undefined,
    queryFn: async () => (await dataOf(api.GET(LIST, { params: { path: { provider_id: id ?? "" } } }))).credentials,
  });
}

export function useAddCredential(id: string) {
  return useProviderChange((body: Schemas["NewCredential"]) => dataOf(api.POST(LIST, { params: { path: { provider_id: id } }, body })));
}

// The following changes name the version of the credential that the user saw. The API refuses them if somebody else has
// changed it.

export function useSetCredentialState(id: string) {
  return useProviderChange(({ credential: { label, updated_at: version }, state }: { credential: Credential; state: CredentialState }) =>
    dataOf(api.PATCH(ONE, { params: { path: { provider_id: id, label }, header: ifMatch(version) }, body: { state } })),
  );
}

export function useRotateCredential(id: string) {
  return useProviderChange(({ credential: { label, updated_at: version }, secret }: { credential: Credential; secret: Secret }) =>
    dataOf(api.POST(`${ONE}/rotate`, { params: { path: { provider_id: id, label }, header: ifMatch(version) }, body: secret })),
  );
}

export function useRemoveCredential(id: string) {
  return useProviderChange(({ label, updated_at: version }: Credential) =>
    dataOf(api.DELETE(ONE, { params: { path: { provider_id: id, label }, header: ifMatch(version) } })),
  );
}
