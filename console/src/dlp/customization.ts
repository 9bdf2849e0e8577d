/** The library of built-in patterns, suppressions of them, and custom patterns: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { PATTERN_SORTS, SUPPRESSION_SORTS } from "../sorts";

export type LibraryPattern = Schemas["LibraryPattern"];
export type Category = LibraryPattern["category"];
export type Suppression = Schemas["Suppression"];
export type CustomPattern = Schemas["CustomPattern"];
export type NewCustomPattern = Schemas["NewCustomPattern"];

export const CATEGORIES: readonly Category[] = ["secret", "pii", "financial", "medical", "infrastructure"];

/** All built-in patterns. They change only with the installed version. */
export function useLibrary() {
  return useQuery({
    queryKey: ["dlp-library"],
    staleTime: Infinity,
    queryFn: async (): Promise<LibraryPattern[]> => {
      const { categories } = await dataOf(api.GET("/api/admin/dlp-rules/available-patterns"));
      return Object.values(categories).flat().sort((one, other) => one.name.localeCompare(other.name));
    },
  });
}

export type PatternSort = (typeof PATTERN_SORTS)[number];
export type SuppressionSort = (typeof SUPPRESSION_SORTS)[number];

export interface PatternFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
}

/** A page of suppressions. */
export function useSuppressionPage(search: string | undefined, sort: SuppressionSort, page: number) {
  const query = { search, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["dlp-suppressions", "list", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/dlp-rules/suppressions", { params: { query } })),
  });
}

/** All suppressions: at most one for each built-in pattern. */
export function useSuppressions(enabled = true) {
  return useQuery({ queryKey: ["dlp-suppressions", "all"], enabled, queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/suppressions")) });
}

/** A page of custom patterns. */
export function useCustomPatterns(filters: PatternFilters, sort: PatternSort, page: number) {
  const query = { ...filters, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["dlp-patterns", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/dlp-rules/custom-patterns", { params: { query } })),
  });
}

function useChange<Input, Output>(list: "dlp-suppressions" | "dlp-patterns", change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: [list] }) });
}

export function useSuppress() {
  return useChange("dlp-suppressions", (body: Schemas["NewSuppression"]) =>
    dataOf(api.POST("/api/admin/dlp-rules/suppressions", { body })));
}

export function useEndSuppression(id: string) {
  return useChange("dlp-suppressions", () =>
    dataOf(api.DELETE("/api/admin/dlp-rules/suppressions/{suppression_id}", { params: { path: { suppression_id: id } } })));
}

export function useSavePattern(pattern: CustomPattern | undefined) {
  const header = useIfMatch(pattern);
  return useChange("dlp-patterns", (body: NewCustomPattern) =>
    pattern === undefined
      ? dataOf(api.POST("/api/admin/dlp-rules/custom-patterns", { body }))
      : dataOf(api.PUT("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: pattern.id }, header }, body })));
}

export function useSetPatternEnabled(id: string) {
  return useChange("dlp-patterns", (enabled: boolean) =>
    dataOf(api.PUT("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: id } }, body: { enabled } })));
}

export function useDeletePattern(id: string) {
  return useChange("dlp-patterns", () =>
    dataOf(api.DELETE("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: id } } })));
}
