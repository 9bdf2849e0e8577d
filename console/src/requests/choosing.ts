/** Values for the filters of the list of requests: users, API keys and models, searched on the server. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf, listOf } from "../api/client";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import type { Choice, Choices } from "../parts/SearchFilter";
import { nameOf } from "../users/api";

const MATCHES = 8;

/** The first users that match. The query is disabled while `search` is null. */
export function useUserChoices(search: string | null): Choices {
  return useQuery({
    queryKey: ["users", "choices", search],
    enabled: search !== null,
    queryFn: async (): Promise<Choice[]> => {
      const query = { ...(search && { search }), page_size: MATCHES };
      const { items } = await dataOf(api.GET("/api/admin/users", { params: { query } }));
      return items.map((user) => ({ id: user.id, name: nameOf(user), detail: user.email }));
    },
  });
}

/** The first API keys that match. Users who can read the organization's data search all keys, others their own. */
export function useKeyChoices(search: string | null): Choices {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["api-keys", "choices", search],
    enabled: search !== null,
    queryFn: async (): Promise<Choice[]> => {
      const query = { ...(search && { search }), limit: MATCHES };
      const { rows } = seesAll
        ? await listOf(api.GET("/api/admin/api-keys", { params: { query } }))
        : await listOf(api.GET("/api/auth/api-keys", { params: { query } }));
      return rows.map((key) => ({ id: key.id, name: key.description, detail: `${key.key_prefix}…` }));
    },
  });
}

/** Returns the entered text, followed by the first matching models of the catalog. The text is included because records
 * can name models that are not in the catalog. */
export function useModelChoices(search: string | null): Choices {
  const { seesAll } = useRights();
  const catalog = useQuery({
    queryKey: ["models", "choices", search],
    enabled: search !== null && seesAll,
    queryFn: async (): Promise<Choice[]> => {
      const query = { ...(search && { search }), per_page: MATCHES };
      const { items } = await dataOf(api.GET("/api/admin/models/catalog/", { params: { query } }));
      return items.map((model) => ({ id: model.model_id, name: model.model_id, detail: model.provider }));
    },
  });
  const typed = search ? [{ id: search, name: search }] : [];
  const known = (catalog.data ?? []).filter((model, at, all) => model.id !== search && all.findIndex(({ id }) => id === model.id) === at);
  return { data: seesAll && catalog.data === undefined ? undefined : [...typed, ...known], error: catalog.error };
}

/** Returns the selected user of the filter. Until the name is loaded, a part of the id is shown. */
export function useChosenUser(id: string | undefined): Choice | undefined {
  const name = useUserName(id);
  return id === undefined ? undefined : { id, name: name ?? id };
}

/** Returns the name of an API key. Returns the beginning of the id while the name is loading, and if the key was
 * deleted. Returns null without an id. */
export function useKeyName(id: string | null | undefined): string | null {
  const { seesAll } = useRights();
  const { data } = useQuery({
    queryKey: ["api-keys", "named", id],
    enabled: typeof id === "string",
    staleTime: 300_000,
    retry: false,
    queryFn: async () =>
      seesAll
        ? (await dataOf(api.GET("/api/admin/api-keys/{key_id}", { params: { path: { key_id: id ?? "" } } }))).description
        : ((await listOf(api.GET("/api/auth/api-keys"))).rows.find((key) => key.id === id)?.description ?? null),
  });
  return typeof id === "string" ? (data ?? `${id.slice(0, 8)}…`) : null;
}

export function useChosenKey(id: string | undefined): Choice | undefined {
  const name = useKeyName(id);
  return id === undefined ? undefined : { id, name: name ?? id };
}
