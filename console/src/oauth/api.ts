/** OAuth clients: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { type IfMatch, useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { CLIENT_SORTS } from "../sorts";

export type OAuthClient = Schemas["OAuthClient"];
export type CreatedClient = Schemas["OAuthClientCreated"];
export type RotatedSecret = Schemas["RotatedSecret"];
export type Scope = OAuthClient["scopes"][number];

export type Sort = (typeof CLIENT_SORTS)[number];

export interface ClientFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
}

export const SCOPES: readonly Scope[] = [
  "chat:write", "mcp:call", "api:read", "api:write", "admin:read", "admin:write", "audit:read", "dlp:read", "groups:read", "groups:write",
];
export const TIERS = ["standard", "premium", "unlimited"] as const;

/** A page of clients. */
export function useClients(filters: ClientFilters, sort: Sort, page: number) {
  return useQuery({
    queryKey: ["oauth-clients", "list", filters, sort, page],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const list = await dataOf(api.GET("/api/admin/oauth-clients/", {
        // Only the list of variant B (docs/variants.md) contains the number of all clients.
        params: { header: { "x-api-variant": "b" }, query: { ...filters, sort, page, page_size: PAGE_SIZE } },
      }));
      return "items" in list ? { rows: list.items, total: list.total } : { rows: list, total: list.length };
    },
  });
}

function useClientChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["oauth-clients"] }),
  });
}

export function useCreateClient() {
  return useClientChange((body: Schemas["NewOAuthClient"]) => dataOf(api.POST("/api/admin/oauth-clients/", { body })));
}

export function useUpdateClient(id: string, header: IfMatch) {
  return useClientChange((body: Schemas["OAuthClientUpdate"]) =>
    dataOf(api.PATCH("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: id }, header }, body })),
  );
}

export function useSetClientEnabled(id: string) {
  return useClientChange((enabled: boolean) =>
    dataOf(api.PATCH("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: id } }, body: { enabled } })),
  );
}

export function useDeleteClient(id: string) {
  return useClientChange(() => dataOf(api.DELETE("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: id } } })));
}

/** Makes a new secret. The API refuses this if somebody else has changed the client, for example its secret, since the
 * form was opened. */
export function useRotateSecret(client: OAuthClient) {
  const header = useIfMatch(client);
  return useClientChange((body: Schemas["SecretRotation"]) =>
    dataOf(api.POST("/api/admin/oauth-clients/{client_id}/rotate-secret", { params: { path: { client_id: client.client_id }, header }, body })),
  );
}
