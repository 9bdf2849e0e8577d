/** Groups and their members: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { DEFAULT_SORT, type SORTS } from "./choices";

export type Group = Schemas["Group"];
export type NewGroup = Schemas["NewGroup"];
export type Member = Schemas["Member"];

export const PAGE_SIZE = 50;

export type Sort = (typeof SORTS)[number];

export interface GroupFilters {
  search?: string | undefined;
  sort?: Sort | undefined;
}

/** A page of the organization's groups. */
export function useGroupPage({ search, sort = DEFAULT_SORT }: GroupFilters, page: number) {
  return useQuery({
    queryKey: ["groups", "list", { search, sort }, page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      dataOf(api.GET("/api/admin/groups", {
        params: { query: { ...(search !== undefined && { search }), sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE } },
      })),
  });
}

/** One group, for a page that does not show it. */
export function useGroup(id: string | undefined) {
  return useQuery({
    queryKey: ["groups", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/admin/groups/{group_id}", { params: { path: { group_id: id ?? "" } } })),
  });
}

/** The organization's groups by name, which come at once. For fields in which one is chosen, and for names. */
export function useGroups() {
  return useQuery({
    queryKey: ["groups"],
    queryFn: async () => (await dataOf(api.GET("/api/admin/groups"))).groups,
  });
}

/** All members of a group by address, which come at once. */
export function useMembers(id: string) {
  return useQuery({
    queryKey: ["groups", id, "members"],
    queryFn: () => dataOf(api.GET("/api/admin/groups/{group_id}/members", { params: { path: { group_id: id } } })),
  });
}

function useGroupChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(["groups", "content-filters", "budgets"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

export function useSaveGroup(group: Group | undefined) {
  const headers = useIfMatch(group);
  return useGroupChange((body: NewGroup) =>
    group === undefined
      ? dataOf(api.POST("/api/admin/groups", { body }))
      : dataOf(api.PUT("/api/admin/groups/{group_id}", { params: { path: { group_id: group.id } }, body, headers })),
  );
}

export function useDeleteGroup(id: string) {
  return useGroupChange(() => dataOf(api.DELETE("/api/admin/groups/{group_id}", { params: { path: { group_id: id } } })));
}

export function useAddMember(id: string) {
  return useGroupChange((userId: string) =>
    dataOf(api.POST("/api/admin/groups/{group_id}/members", { params: { path: { group_id: id } }, body: { user_id: userId } })),
  );
}

export function useRemoveMember(id: string) {
  return useGroupChange((userId: string) =>
    dataOf(api.DELETE("/api/admin/groups/{group_id}/members/{user_id}", { params: { path: { group_id: id, user_id: userId } } })),
  );
}
