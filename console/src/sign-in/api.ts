/** Identity providers, provisioning tokens, and the policies for second factors and sessions. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { changeOf, type IfMatch, invalidateSettings, versionedOf } from "../api/versions";

export type Idp = Schemas["Idp"];
export type NewIdp = Schemas["NewIdp"];
export type IdpUpdate = Schemas["IdpUpdate"];
export type ScimToken = Schemas["ScimToken"];
export type MfaPolicy = Schemas["MfaPolicy"];
export type SessionPolicy = Schemas["SessionPolicy"];

/** All identity providers, sorted by name. There are at most 100, and the API returns them in one response. */
export function useIdps() {
  return useQuery({ queryKey: ["identity-providers"], queryFn: async () => (await dataOf(api.GET("/api/admin/saml/idp"))).idps });
}

export function useServiceProvider() {
  return useQuery({ queryKey: ["service-provider"], queryFn: () => dataOf(api.GET("/api/admin/saml/service-provider")) });
}

function useChange<Input, Output>(key: string, change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: [key] }) });
}

function useSettingChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => invalidateSettings(client) });
}

export function useCreateIdp() {
  return useChange("identity-providers", (body: NewIdp) => dataOf(api.POST("/api/admin/saml/idp", { body })));
}

export function useUpdateIdp(id: string, header: IfMatch) {
  return useChange("identity-providers", (body: IdpUpdate) =>
    dataOf(api.PUT("/api/admin/saml/idp/{idp_id}", { params: { path: { idp_id: id }, header }, body })),
  );
}

export function useSetIdpActive(id: string) {
  return useChange("identity-providers", (isActive: boolean) =>
    dataOf(api.PUT("/api/admin/saml/idp/{idp_id}", { params: { path: { idp_id: id } }, body: { is_active: isActive } })),
  );
}

export function useDeleteIdp(id: string) {
  return useChange("identity-providers", () => dataOf(api.DELETE("/api/admin/saml/idp/{idp_id}", { params: { path: { idp_id: id } } })));
}

/** Reads metadata of an identity provider. Nothing is stored. */
export function useReadMetadata() {
  return useMutation({ mutationFn: (body: Schemas["MetadataSource"]) => dataOf(api.POST("/api/admin/saml/metadata", { body })) });
}

/** Returns the address that starts a sign-in through this provider. */
export function signInUrl(id: string): string {
  return `${location.origin}/api/saml/login?idp_id=${id}`;
}

export function useScimTokens() {
  return useQuery({ queryKey: ["scim-tokens"], queryFn: async () => (await dataOf(api.GET("/api/admin/scim/tokens"))).tokens });
}

export function useCreateScimToken() {
  return useChange("scim-tokens", (body: Schemas["NewScimToken"]) => dataOf(api.POST("/api/admin/scim/token", { body })));
}

export function useDeleteScimToken(id: string) {
  return useChange("scim-tokens", () => dataOf(api.DELETE("/api/admin/scim/tokens/{token_id}", { params: { path: { token_id: id } } })));
}

export function useMfaPolicy() {
  return useQuery({ queryKey: ["mfa-policy"], queryFn: () => versionedOf(api.GET("/api/v1/admin/org/mfa-policy")) });
}

export function useUpdateMfaPolicy() {
  return useSettingChange(({ version, ...body }: Schemas["MfaPolicyUpdate"] & { version: string }) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/org/mfa-policy", { params: { header }, body })));
}

export function useSessionPolicy() {
  return useQuery({ queryKey: ["session-policy"], queryFn: () => versionedOf(api.GET("/api/v1/admin/org/session-policy")) });
}

export function useUpdateSessionPolicy() {
  return useSettingChange(({ version, ...body }: Schemas["SessionPolicyUpdate"] & { version: string }) =>
    changeOf(version, (header) => api.PUT("/api/v1/admin/org/session-policy", { params: { header }, body })));
}
