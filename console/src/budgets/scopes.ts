/** What a budget is for: names of groups, users, API keys and OAuth clients. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { useUserName } from "../api/users";
import { useGroups } from "../groups/api";
import { texts } from "../texts";
import type { ScopeType } from "./api";

/** The most that the API sends at once. */
const MAX_LISTED = 500;

/** The organization's OAuth clients, newest first. */
export function useOAuthClients(enabled: boolean) {
  return useQuery({
    queryKey: ["oauth-clients"],
    enabled,
    queryFn: async () => {
      const list = await dataOf(api.GET("/api/admin/oauth-clients/", { params: { query: { limit: MAX_LISTED } } }));
      return Array.isArray(list) ? list : list.items;
    },
  });
}

/** The API keys of a user, newest first; without a user, of all. */
export function useApiKeys(userId: string | undefined, enabled: boolean) {
  return useQuery({
    queryKey: ["api-keys", "owned", userId],
    enabled,
    queryFn: () =>
      dataOf(api.GET("/api/admin/api-keys", { params: { query: { ...(userId !== undefined && { user_id: userId }), limit: MAX_LISTED } } })),
  });
}

/** The name of what a budget is for, or the beginning of its id where the name is not known. */
export function useScopeName({ scope_type: type, scope_id: id }: { scope_type: ScopeType; scope_id: string }): string {
  const groups = useGroups();
  const user = useUserName(type === "user" ? id : null);
  const keys = useApiKeys(undefined, type === "api_key");
  const clients = useOAuthClients(type === "oauth_client");
  if (type === "tenant") return texts.budgets.everybody;
  const names: Record<Exclude<ScopeType, "tenant">, string | null | undefined> = {
    group: groups.data?.find((group) => group.id === id)?.name,
    user,
    api_key: keys.data?.find((key) => key.id === id)?.description,
    oauth_client: clients.data?.find((client) => client.client_id === id)?.name,
  };
  return names[type] ?? `${id.slice(0, 8)}…`;
}
