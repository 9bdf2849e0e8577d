/** The library of built-in patterns, suppressions of them, and custom patterns: queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";

export type LibraryPattern = Schemas["LibraryPattern"];
export type Category = LibraryPattern["category"];
export type Suppression = Schemas["Suppression"];
export type CustomPattern = Schemas["CustomPattern"];
export type NewCustomPattern = Schemas["NewCustomPattern"];

export const CATEGORIES: readonly Category[] = ["secret", "pii", "financial", "medical", "infrastructure"];

/** All built-in patterns. They are part of the installed version. */
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

/** All suppressions: at most one for each built-in pattern. */
export function useSuppressions() {
  return useQuery({ queryKey: ["dlp-suppressions"], queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/suppressions")) });
}

/** All custom patterns, oldest first, which are at most a thousand and come at once. */
export function useCustomPatterns() {
  return useQuery({ queryKey: ["dlp-patterns"], queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/custom-patterns")) });
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
  const headers = useIfMatch(pattern);
  return useChange("dlp-patterns", (body: NewCustomPattern) =>
    pattern === undefined
      ? dataOf(api.POST("/api/admin/dlp-rules/custom-patterns", { body }))
      : dataOf(api.PUT("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: pattern.id } }, body, headers })));
}

export function useSetPatternEnabled(id: string) {
  return useChange("dlp-patterns", (enabled: boolean) =>
    dataOf(api.PUT("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: id } }, body: { enabled } })));
}

export function useDeletePattern(id: string) {
  return useChange("dlp-patterns", () =>
    dataOf(api.DELETE("/api/admin/dlp-rules/custom-patterns/{pattern_id}", { params: { path: { pattern_id: id } } })));
}
