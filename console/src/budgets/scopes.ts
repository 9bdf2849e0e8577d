/** Names of budget scopes: groups, users, API keys and OAuth clients. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, listOf } from "../api/client";
import { useUserName } from "../api/users";
import { useGroupNames } from "../groups/api";
import { useClients } from "../oauth/api";
import { PAGE_SIZE } from "../parts/ListPanel";
import { useKeyName } from "../requests/choosing";
import { budgetTexts } from "../texts/budgets";
import type { ScopeType } from "./api";

/** Returns the first page of OAuth clients that match a search, sorted by name. */
export function useClientOptions(search: string | undefined) {
  const { data } = useClients({ search }, "name", 1);
  return data && { rows: data.rows.map((client) => ({ id: client.client_id, name: client.name })), total: data.total };
}

/** Returns the name of an OAuth client, or undefined while it is loading and if it cannot be loaded. */
export function useClientName(id: string | null) {
  const { data } = useQuery({
    queryKey: ["oauth-clients", "one", id],
    enabled: id !== null,
    retry: false,
    queryFn: () => dataOf(api.GET("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: id ?? "" } } })),
  });
  return data?.name;
}

/** Returns the first keys of a user that match a search, sorted by name. */
export function useKeyOptions(userId: string, search: string | undefined) {
  const query = { user_id: userId, ...(search !== undefined && { search }), sort: "description", limit: PAGE_SIZE } as const;
  const { data } = useQuery({
    queryKey: ["api-keys", "options", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/api-keys", { params: { query } })),
  });
  return data && { rows: data.rows.map((key) => ({ id: key.id, name: `${key.description} (${key.key_prefix}…)` })), total: data.total };
}

/** Returns the name of a budget's scope, or the beginning of its id if the name is not known. */
export function useScopeName({ scope_type: type, scope_id: id }: { scope_type: ScopeType; scope_id: string }): string {
  const groups = useGroupNames(type === "group" ? [id] : []);
  const user = useUserName(type === "user" ? id : null);
  const key = useKeyName(type === "api_key" ? id : null);
  const client = useClientName(type === "oauth_client" ? id : null);
  if (type === "tenant") return budgetTexts.everybody;
  const names: Record<Exclude<ScopeType, "tenant">, string | null | undefined> = {
    group: groups.get(id),
    user,
    api_key: key,
    oauth_client: client,
  };
  return names[type] ?? `${id.slice(0, 8)}…`;
}
