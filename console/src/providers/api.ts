/** Providers: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ApiError, apiError } from "../api/errors";
import { type IfMatch, MUST_BE_NEW } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { PROVIDER_SORTS } from "../sorts";

export type Provider = Schemas["Provider"];
export type Credentials = Schemas["Credentials"];
export type Preset = Schemas["ProviderPreset"];

/** The kinds of providers, with the fields of their credentials. */
export const KINDS = {
  openai: ["api_key"],
  anthropic: ["api_key"],
  gemini: ["api_key"],
  mistral: ["api_key"],
  azure_openai: ["api_key", "entra_tenant_id", "entra_client_id", "entra_client_secret", "hosted_endpoint", "hosted_api_version"],
  bedrock: ["cloud_access_key_id", "cloud_secret_access_key", "cloud_session_token", "api_key", "cloud_region"],
  vertex_ai: ["service_account_key", "cloud_project", "cloud_location"],
  ollama: ["local_runtime_base_url"],
  openai_compatible: ["base_url", "api_key"],
} as const;
export type Kind = keyof typeof KINDS;
export type CredentialField = (typeof KINDS)[Kind][number];
export const SECRETS: readonly CredentialField[] = [
  "api_key", "cloud_secret_access_key", "cloud_session_token", "service_account_key", "entra_client_secret",
];
/** The ways of authentication of kinds that have several, with their fields. The first is the default. */
export const WAYS: Partial<Record<Kind, Partial<Record<Way, readonly CredentialField[]>>>> = {
  azure_openai: { api_key: ["api_key"], application: ["entra_tenant_id", "entra_client_id", "entra_client_secret"] },
  bedrock: { keys: ["cloud_access_key_id", "cloud_secret_access_key", "cloud_session_token"], api_key: ["api_key"] },
};
export type Way = "api_key" | "application" | "keys";
/** The optional fields of each kind. */
export const OPTIONAL: Partial<Record<Kind, readonly CredentialField[]>> = {
  azure_openai: ["hosted_api_version"],
  bedrock: ["cloud_session_token"],
  openai_compatible: ["api_key"],
};

/** The fields of a kind, without those of other ways of authentication. */
export function fieldsOf(kind: Kind, way: Way | undefined): readonly CredentialField[] {
  const others = Object.entries(WAYS[kind] ?? {}).filter(([name]) => name !== way).flatMap(([, fields]) => fields);
  const own = way === undefined ? [] : WAYS[kind]?.[way] ?? [];
  return KINDS[kind].filter((name) => own.includes(name) || !others.includes(name));
}

const CREDENTIALS = "/api/admin/providers/{provider_id}/credentials";
const REFRESH_MS = 15_000;

export type Sort = (typeof PROVIDER_SORTS)[number];

export interface ProviderFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
}

/** A page of providers with their health. */
export function useProviderPage(filters: ProviderFilters, sort: Sort, page: number) {
  const query = { ...filters, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["providers", "list", query],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: async () => {
      const { data, error, response } = await api.GET("/api/admin/providers", { params: { query } });
      if (!response.ok || data === undefined) throw apiError(response, error);
      return { rows: data.providers, total: Number(response.headers.get("x-total-count")) };
    },
  });
}

/** Returns the first providers that match, as options of a field. */
export function useProviderOptions(search: string | undefined) {
  const { data } = useProviderPage({ search }, "id", 1);
  return data;
}

/** A provider by its id. */
export function useProvider(id: string) {
  return useQuery({
    queryKey: ["providers", "one", id],
    enabled: id !== "",
    queryFn: () => dataOf(api.GET("/api/admin/providers/{provider_id}", { params: { path: { provider_id: id } } })),
  });
}

/** All providers, sorted by id, for fields that select a provider. There are at most 500. */
export function useProviders(enabled = true) {
  return useQuery({
    queryKey: ["providers", "all"],
    enabled,
    refetchInterval: REFRESH_MS,
    queryFn: async () => (await dataOf(api.GET("/api/admin/providers"))).providers,
  });
}

/** Presets: services and servers with a known kind and address. */
export function usePresets(enabled: boolean) {
  return useQuery({
    queryKey: ["provider-presets"],
    enabled,
    staleTime: Infinity,
    queryFn: async () => (await dataOf(api.GET("/api/admin/provider-presets"))).presets,
  });
}

/** A change of providers, after which everything that depends on them is loaded anew. */
export function useProviderChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all(["providers", "models", "kill-switches"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

/** Sets the credentials of a provider. The API refuses the request if somebody else has changed the provider, or with
 * `MUST_BE_NEW` if there is one with this id. */
export function useSetCredentials() {
  return useProviderChange(
    ({ id, credentials, header }: { id: string; credentials: Credentials; header: IfMatch | typeof MUST_BE_NEW }) =>
      dataOf(api.PUT(CREDENTIALS, { params: { path: { provider_id: id }, header }, body: credentials })).catch((error: unknown) => {
        if (header !== MUST_BE_NEW || !(error instanceof ApiError) || error.status !== 412) throw error;
        // The id is taken, and the API's message says so. Nobody has changed what the form shows.
        throw new ApiError(409, error.message, error.code, error.fields, null, error.requestId);
      }),
  );
}

export function useRemoveCredentials(id: string) {
  return useProviderChange(() => dataOf(api.DELETE(CREDENTIALS, { params: { path: { provider_id: id } } })));
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
