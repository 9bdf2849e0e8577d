/** Groups and their members: queries and changes. */
import { keepPreviousData, useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import { DEFAULT_SORT, type SORTS } from "./choices";

export type Group = Schemas["Group"];
export type NewGroup = Schemas["NewGroup"];
export type Member = Schemas["Member"];

export type Sort = (typeof SORTS)[number];

export interface GroupFilters {
  search?: string | undefined;
  sort?: Sort | undefined;
}

/** A page of the organization's groups. */
export function useGroupPage({ search, sort = DEFAULT_SORT }: GroupFilters, page: number, size = PAGE_SIZE) {
  return useQuery({
    queryKey: ["groups", "list", { search, sort }, page, size],
    placeholderData: keepPreviousData,
    queryFn: () =>
      dataOf(api.GET("/api/admin/groups", {
        params: { query: { ...(search !== undefined && { search }), sort, limit: size, offset: (page - 1) * size } },
      })),
  });
}

/** A group by its id. A page needs it if the URL refers to a group that is not on the loaded page of the list. */
export function useGroup(id: string | undefined) {
  return useQuery({
    queryKey: ["groups", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/admin/groups/{group_id}", { params: { path: { group_id: id ?? "" } } })),
  });
}

/** Returns the first page of groups that match a search, sorted by name, as options of a field. */
export function useGroupOptions(search: string | undefined) {
  const { data } = useGroupPage({ search }, 1);
  return data && { rows: data.groups, total: data.total };
}

/** Returns the first groups with a rule that allows the model, as options of a field. Groups from a directory are left
 * out, because the directory would undo a membership. */
export function useAllowingGroups(model: string, search: string | undefined) {
  const query = { ...(search !== undefined && { search }), allowed_model: model, from_directory: false, limit: PAGE_SIZE };
  const { data } = useQuery({
    queryKey: ["groups", "allowing", query],
    placeholderData: keepPreviousData,
    queryFn: () => dataOf(api.GET("/api/admin/groups", { params: { query } })),
  });
  return data && { rows: data.groups, total: data.total };
}

const NAMES_FRESH_MS = 300_000;

/** Returns the groups that have been loaded, by id. Deleted groups are missing. */
export function useGroupsById(ids: readonly string[]): ReadonlyMap<string, Group> {
  return useQueries({
    queries: [...new Set(ids)].map((id) => ({
      queryKey: ["groups", "one", id],
      staleTime: NAMES_FRESH_MS,
      retry: false,
      queryFn: () => dataOf(api.GET("/api/admin/groups/{group_id}", { params: { path: { group_id: id } } })),
    })),
    combine: (results) => new Map(results.flatMap(({ data }) => (data === undefined ? [] : [[data.id, data] as const]))),
  });
}

/** Returns the names of the groups that have been loaded, by id. */
export function useGroupNames(ids: readonly string[]): ReadonlyMap<string, string> {
  return new Map([...useGroupsById(ids)].map(([id, { name }]) => [id, name]));
}

/** A page of a group's members, sorted by mail address. */
export function useMembers(id: string, search: string | undefined, page: number) {
  const query = { search, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["groups", id, "members", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/groups/{group_id}/members", { params: { path: { group_id: id }, query } })),
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
  const header = useIfMatch(group);
  return useGroupChange((body: NewGroup) =>
    group === undefined
      ? dataOf(api.POST("/api/admin/groups", { body }))
      : dataOf(api.PUT("/api/admin/groups/{group_id}", { params: { path: { group_id: group.id }, header }, body })),
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
