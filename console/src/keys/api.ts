/** API keys: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";

export type ApiKey = Schemas["ApiKey"] & { user_id?: string };
export type CreatedKey = Schemas["ApiKeyCreated"];
export type NewKey = Schemas["NewApiKey"];

export const PAGE_SIZE = 50;

interface Shown {
  all: boolean;
  enabled: boolean | undefined;
  page: number;
}

/** A page of keys: of all users, or one's own, which are few and come at once. */
export function useKeys({ all, enabled, page }: Shown) {
  return useQuery({
    queryKey: ["api-keys", { all, enabled, page }],
    placeholderData: keepPreviousData,
    queryFn: (): Promise<{ rows: ApiKey[]; total: number }> =>
      all
        ? listOf(api.GET("/api/admin/api-keys", {
            params: { query: { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE, ...(enabled === undefined ? {} : { enabled }) } },
          }))
        : listOf(api.GET("/api/auth/api-keys")),
  });
}

/** The keys of a service account, newest first. */
export function useServiceKeys(userId: string) {
  return useQuery({
    queryKey: ["api-keys", "of", userId],
    queryFn: (): Promise<ApiKey[]> => dataOf(api.GET("/api/admin/users/{user_id}/api-keys", { params: { path: { user_id: userId } } })),
  });
}

function useKeyChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
}

/** Creates a key of one's own, or of a service account. */
export function useCreateKey(serviceAccount?: string) {
  return useKeyChange((body: NewKey): Promise<CreatedKey> =>
    serviceAccount === undefined
      ? dataOf(api.POST("/api/auth/api-keys", { body }))
      : dataOf(api.POST("/api/admin/users/{user_id}/api-keys", { params: { path: { user_id: serviceAccount } }, body })),
  );
}

export function useSetEnabled() {
  return useKeyChange(({ id, enabled }: { id: string; enabled: boolean }) =>
    dataOf(api.PATCH("/api/auth/api-keys/{key_id}", { params: { path: { key_id: id } }, body: { is_enabled: enabled } })),
  );
}

export function useDeleteKey() {
  return useKeyChange((id: string) =>
    dataOf(api.DELETE("/api/auth/api-keys/{key_id}", { params: { path: { key_id: id } } })),
  );
}
