/** Providers: queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type Provider = Schemas["Provider"];
export type Credentials = Schemas["Credentials"];
export type Preset = Schemas["ProviderPreset"];

/** The kinds of provider with the fields of their credentials, and which of them are secrets. */
export const KINDS = {
  openai: ["api_key"],
  anthropic: ["api_key"],
  gemini: ["api_key"],
  mistral: ["api_key"],
  azure_openai: ["api_key", "hosted_endpoint", "hosted_api_version"],
  bedrock: ["cloud_access_key_id", "cloud_secret_access_key", "cloud_region"],
  ollama: ["local_runtime_base_url"],
  openai_compatible: ["base_url", "api_key"],
} as const;
export type Kind = keyof typeof KINDS;
export type CredentialField = (typeof KINDS)[Kind][number];
export const SECRETS: readonly CredentialField[] = ["api_key", "cloud_secret_access_key"];
/** Fields without which the kind works too. */
export const OPTIONAL: Partial<Record<Kind, readonly CredentialField[]>> = {
  azure_openai: ["hosted_api_version"],
  openai_compatible: ["api_key"],
};

const REFRESH_MS = 15_000;

export function useProviders() {
  return useQuery({
    queryKey: ["providers"],
    refetchInterval: REFRESH_MS,
    queryFn: async () => (await dataOf(api.GET("/api/admin/providers"))).providers,
  });
}

/** Services and servers whose kind and address are known. */
export function usePresets(enabled: boolean) {
  return useQuery({
    queryKey: ["provider-presets"],
    enabled,
    staleTime: Infinity,
    queryFn: async () => (await dataOf(api.GET("/api/admin/provider-presets"))).presets,
  });
}

function useProviderChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(["providers", "models", "kill-switches"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

/** Sets credentials. A provider that is new is added, and never replaces one that exists. */
export function useSetCredentials() {
  return useProviderChange(({ id, credentials, isNew }: { id: string; credentials: Credentials; isNew: boolean }) =>
    dataOf(api.PUT("/api/admin/providers/{provider_id}/credentials", {
      params: { path: { provider_id: id } }, body: credentials, headers: isNew ? { "If-None-Match": "*" } : {},
    })),
  );
}

export function useRemoveCredentials(id: string) {
  return useProviderChange(() =>
    dataOf(api.DELETE("/api/admin/providers/{provider_id}/credentials", { params: { path: { provider_id: id } } })),
  );
}

export function useDeleteProvider(id: string) {
  return useProviderChange(() => dataOf(api.DELETE("/api/admin/providers/{provider_id}", { params: { path: { provider_id: id } } })));
}

export function useSetProviderEnabled(id: string) {
  return useProviderChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/providers/{provider_id}/status", { params: { path: { provider_id: id } }, body: { enabled } })),
  );
}

export function useCheckHealth(id: string) {
  return useProviderChange(() =>
    dataOf(api.POST("/api/admin/providers/{provider_id}/health-check", { params: { path: { provider_id: id } } })),
  );
}
