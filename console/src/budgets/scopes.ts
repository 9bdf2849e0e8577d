/** Names of budget scopes: groups, users, API keys and OAuth clients. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { useUserName } from "../api/users";
import { useGroupNames } from "../groups/api";
import { useClients } from "../oauth/api";
import { budgetTexts } from "../texts/budgets";
import type { ScopeType } from "./api";

/** The maximum number of API keys that the API returns in one response. */
const MAX_LISTED = 500;

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

/** The API keys of a user, newest first. Without `userId`, the keys of all users. */
export function useApiKeys(userId: string | undefined, enabled: boolean) {
  return useQuery({
    queryKey: ["api-keys", "owned", userId],
    enabled,
    queryFn: () =>
      dataOf(api.GET("/api/admin/api-keys", { params: { query: { ...(userId !== undefined && { user_id: userId }), limit: MAX_LISTED } } })),
  });
}

/** Returns the name of a budget's scope, or the beginning of its id if the name is not known. */
export function useScopeName({ scope_type: type, scope_id: id }: { scope_type: ScopeType; scope_id: string }): string {
  const groups = useGroupNames(type === "group" ? [id] : []);
  const user = useUserName(type === "user" ? id : null);
  const keys = useApiKeys(undefined, type === "api_key");
  const client = useClientName(type === "oauth_client" ? id : null);
  if (type === "tenant") return budgetTexts.everybody;
  const names: Record<Exclude<ScopeType, "tenant">, string | null | undefined> = {
    group: groups.get(id),
    user,
    api_key: keys.data?.find((key) => key.id === id)?.description,
    oauth_client: client,
  };
  return names[type] ?? `${id.slice(0, 8)}…`;
}
