/** API keys: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { KEY_SORTS } from "../sorts";

export type ApiKey = Schemas["ApiKey"] & { user_id?: string; user_name?: string };
export type CreatedKey = Schemas["ApiKeyCreated"];
export type NewKey = Schemas["NewApiKey"];

/** The number at which the server stops counting the keys of all users. */
export const MAX_TOTAL = 10_000;

export type Sort = (typeof KEY_SORTS)[number];

export interface KeyFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
}

/** A page of API keys: of all users if `all` is true, otherwise the user's own. The user's own keys cannot be sorted by
 * owner. */
export function useKeys(all: boolean, filters: KeyFilters, sort: Sort, page: number) {
  const ownSort = sort === "owner" || sort === "-owner" ? DEFAULT_SORT : sort;
  const window = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["api-keys", { all, filters, sort, page }],
    placeholderData: keepPreviousData,
    queryFn: (): Promise<{ rows: ApiKey[]; total: number }> =>
      all
        ? listOf(api.GET("/api/admin/api-keys", { params: { query: { ...filters, sort, ...window, max_total: MAX_TOTAL } } }))
        : listOf(api.GET("/api/auth/api-keys", { params: { query: { ...filters, sort: ownSort, ...window } } })),
  });
}

export const DEFAULT_SORT = "-created_at";

/** A page of the keys of a service account, newest first. */
export function useServiceKeys(userId: string, page: number) {
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["api-keys", "of", userId, page],
    placeholderData: keepPreviousData,
    queryFn: (): Promise<{ rows: ApiKey[]; total: number }> =>
      listOf(api.GET("/api/admin/users/{user_id}/api-keys", { params: { path: { user_id: userId }, query } })),
  });
}

function useKeyChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
}

/** Creates a key of the user or of a service account. */
export function useCreateKey(serviceAccount?: string) {
  return useKeyChange((body: NewKey): Promise<CreatedKey> =>
    serviceAccount === undefined
      ? dataOf(api.POST("/api/auth/api-keys", { body }))
      : dataOf(api.POST("/api/admin/users/{user_id}/api-keys", { params: { path: { user_id: serviceAccount } }, body })),
  );
}

/** Changes the fields in `body`. Other fields keep their values. */
export function useUpdateKey(key: ApiKey) {
  const header = useIfMatch(key);
  return useKeyChange((body: Schemas["ApiKeyUpdate"]) =>
    dataOf(api.PATCH("/api/auth/api-keys/{key_id}", { params: { path: { key_id: key.id }, header }, body })),
  );
}

export function useSetKeyEnabled(id: string) {
  return useKeyChange((enabled: boolean) =>
    dataOf(api.PATCH("/api/auth/api-keys/{key_id}", { params: { path: { key_id: id } }, body: { is_enabled: enabled } })),
  );
}

export function useDeleteKey() {
  return useKeyChange((id: string) =>
    dataOf(api.DELETE("/api/auth/api-keys/{key_id}", { params: { path: { key_id: id } } })),
  );
}
