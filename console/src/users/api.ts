/** Users: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { USER_SORTS } from "../sorts";

export { KINDS, ROLES } from "./choices";

export type User = Schemas["User"];
export type Role = User["role"];
export type NewUser = Schemas["NewUser"];
export type UserUpdate = Schemas["UserUpdate"];

/** The number at which the server stops counting users. */
export const MAX_TOTAL = 10_000;
export const DEFAULT_SORT = "-created_at";

export type Sort = (typeof USER_SORTS)[number];

export interface UserFilters {
  search?: string | undefined;
  role?: Role | undefined;
  active?: boolean | undefined;
  kind?: User["kind"] | undefined;
}

/** A page of the organization's users. */
export function useUsers(filters: UserFilters, sort: Sort, page: number, size = PAGE_SIZE) {
  return useQuery({
    queryKey: ["users", "list", filters, sort, page, size],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const query = { ...filters, sort, page, page_size: size, max_total: MAX_TOTAL };
      const { items, total } = await dataOf(api.GET("/api/admin/users", { params: { query } }));
      return { rows: items, total };
    },
  });
}

export function useUser(id: string) {
  return useQuery({
    queryKey: ["users", id],
    queryFn: () => dataOf(api.GET("/api/admin/users/{user_id}", { params: { path: { user_id: id } } })),
  });
}

/** A page of the open sessions of a user, newest first. */
export function useUserSessions(id: string, page: number) {
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["users", id, "sessions", page],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/users/{user_id}/sessions", { params: { path: { user_id: id }, query } })),
  });
}

export function useEndUserSession(id: string) {
  return useUserChange((sessionId: string) =>
    dataOf(api.DELETE("/api/admin/users/{user_id}/sessions/{session_id}", { params: { path: { user_id: id, session_id: sessionId } } })),
  );
}

export function useEndUserSessions(id: string) {
  return useUserChange(() => dataOf(api.DELETE("/api/admin/users/{user_id}/sessions", { params: { path: { user_id: id } } })));
}

function useUserChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["users"] }),
  });
}

export function useCreateUser() {
  return useUserChange((body: NewUser) => dataOf(api.POST("/api/admin/users", { body })));
}

export function useUpdateUser(user: User) {
  const header = useIfMatch(user);
  return useUserChange((body: UserUpdate) =>
    dataOf(api.PATCH("/api/admin/users/{user_id}", { params: { path: { user_id: user.id }, header }, body })),
  );
}

export function useSetActive(id: string) {
  return useUserChange((isActive: boolean) =>
    dataOf(api.PATCH("/api/admin/users/{user_id}", { params: { path: { user_id: id } }, body: { is_active: isActive } })),
  );
}

export function useDeleteUser(id: string) {
  return useUserChange((anonymise: boolean) =>
    dataOf(api.DELETE("/api/admin/users/{user_id}", { params: { path: { user_id: id }, query: { anonymise } } })),
  );
}

export function useIssueReset(id: string) {
  return useUserChange(() =>
    dataOf(api.POST("/api/admin/users/{user_id}/password-reset", { params: { path: { user_id: id } } })),
  );
}

export function useResetFactors(id: string) {
  return useUserChange(() => dataOf(api.DELETE("/api/admin/users/{user_id}/mfa", { params: { path: { user_id: id } } })));
}

/** Returns the display name of a user, or else the mail address, the username or the id. */
export function nameOf(user: User): string {
  return user.display_name ?? user.email ?? user.username ?? user.id;
}
