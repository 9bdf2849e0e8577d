/** Content filters: queries, changes and the trial. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { FILTER_SORTS } from "../sorts";
import { TYPES } from "./choices";

export { TYPES };

export type ContentFilter = Schemas["ContentFilter"];
export type FilterType = ContentFilter["filter_type"];
export type NewContentFilter = Schemas["NewContentFilter"];
export type FilterTried = Schemas["FilterTried"];

export type Sort = (typeof FILTER_SORTS)[number];

export interface Filters {
  search?: string | undefined;
  type?: FilterType | undefined;
  enabled?: boolean | undefined;
}

/** A page of filters. */
export function useFilters({ search, type, enabled }: Filters, sort: Sort, page: number) {
  const query = { search, filter_type: type, enabled, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["content-filters", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/content-filters/", { params: { query } })),
  });
}

function useFilterChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["content-filters"] }),
  });
}

export function useSaveFilter(filter: ContentFilter | undefined) {
  const header = useIfMatch(filter);
  return useFilterChange((body: NewContentFilter) =>
    filter === undefined
      ? dataOf(api.POST("/api/admin/content-filters/", { body }))
      : dataOf(api.PUT("/api/admin/content-filters/{filter_id}", { params: { path: { filter_id: filter.id }, header }, body })),
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
