/** Content filters: queries, changes and the trial. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";

export type ContentFilter = Schemas["ContentFilter"];
export type FilterType = ContentFilter["filter_type"];
export type NewContentFilter = Schemas["NewContentFilter"];
export type FilterTried = Schemas["FilterTried"];

export const TYPES: readonly FilterType[] = ["keyword_block", "topic_block", "custom_instruction"];

/** All filters in the order of evaluation, which are at most a thousand and come at once. */
export function useFilters() {
  return useQuery({ queryKey: ["content-filters"], queryFn: () => dataOf(api.GET("/api/admin/content-filters/")) });
}

function useFilterChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["content-filters"] }),
  });
}

export function useSaveFilter(filter: ContentFilter | undefined) {
  const headers = useIfMatch(filter);
  return useFilterChange((body: NewContentFilter) =>
    filter === undefined
      ? dataOf(api.POST("/api/admin/content-filters/", { body }))
      : dataOf(api.PUT("/api/admin/content-filters/{filter_id}", { params: { path: { filter_id: filter.id } }, body, headers })),
  );
}

export function useSetEnabled(id: string) {
  return useFilterChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/content-filters/{filter_id}", { params: { path: { filter_id: id } }, body: { enabled } })),
  );
}

export function useDeleteFilter(id: string) {
  return useFilterChange(() =>
    dataOf(api.DELETE("/api/admin/content-filters/{filter_id}", { params: { path: { filter_id: id } } })),
  );
}

export function useTestFilters() {
  return useMutation({
    mutationFn: (body: Schemas["FilterTrial"]) => dataOf(api.POST("/api/admin/content-filters/test", { body })),
  });
}
