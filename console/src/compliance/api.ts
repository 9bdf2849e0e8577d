/** Compliance bundles and their figures: queries, changes and files. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { DEFAULT_SORT, type PERIODS_DAYS, type SORTS } from "./choices";
import { ifMatch, useIfMatch } from "../api/versions";

export { FRAMEWORKS, PERIODS_DAYS } from "./choices";

export type Bundle = Schemas["Bundle"];
export type NewBundle = Schemas["NewBundle"];
export type BundleUpdate = Schemas["BundleUpdate"];
export type BundleStats = Schemas["BundleStats"];
export type Summary = Schemas["Report"]["summary"];
export type ImportedBundle = Schemas["ImportedBundle"];
export type ImportSummary = Schemas["ImportSummary"];
export type EntityType = Schemas["EntityTypeShown"];
export type Framework = Bundle["regulatory_framework"];

export const PAGE_SIZE = 50;
export type PeriodDays = (typeof PERIODS_DAYS)[number];
export const DEFAULT_DAYS: PeriodDays = 30;

export type Sort = (typeof SORTS)[number];

export interface BundleFilters {
  search?: string | undefined;
  framework?: Framework | undefined;
  state?: Bundle["state"] | undefined;
  enabled?: boolean | undefined;
  sort?: Sort | undefined;
}

/** A page of the organization's bundles. */
export function useBundles({ framework, sort = DEFAULT_SORT, ...filters }: BundleFilters, page: number) {
  return useQuery({
    queryKey: ["compliance", "bundles", { framework, sort, ...filters }, page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      listOf<Bundle>(api.GET("/api/admin/compliance-bundles", {
        params: {
          query: {
            ...filters, ...(framework !== undefined && { regulatory_framework: framework }), sort,
            limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE,
          },
        },
      })),
  });
}

/** A bundle by its id. The page needs it if the URL refers to a bundle that is not on the loaded page of the list. */
export function useBundle(id: string | undefined) {
  return useQuery({
    queryKey: ["compliance", "bundle", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/admin/compliance-bundles/{bundle_id}", { params: { path: { bundle_id: id ?? "" } } })),
  });
}

/** The figures of the active bundles. */
export function useSummary(days: PeriodDays) {
  return useQuery({
    queryKey: ["compliance", "summary", days],
    placeholderData: keepPreviousData,
    queryFn: () => dataOf(api.GET("/api/admin/compliance/summary", { params: { query: { days } } })),
  });
}

export function useBundleStats(id: string, days: PeriodDays) {
  return useQuery({
    queryKey: ["compliance", "stats", id, days],
    queryFn: () => dataOf(api.GET("/api/admin/compliance/bundles/{bundle_id}/stats", { params: { path: { bundle_id: id }, query: { days } } })),
  });
}

/** The entity types that a bundle can list. */
export function useEntityTypes() {
  return useQuery({
    queryKey: ["entity-types"],
    staleTime: Infinity,
    queryFn: async () => (await dataOf(api.GET("/api/admin/dlp-rules/entity-types"))).entity_types,
  });
}

function useBundleChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["compliance"] }),
  });
}

export function useSaveBundle(bundle: Bundle | undefined) {
  const header = useIfMatch(bundle);
  return useBundleChange((body: NewBundle) =>
    bundle === undefined
      ? dataOf(api.POST("/api/admin/compliance-bundles", { body }))
      : dataOf(api.PUT("/api/admin/compliance-bundles/{bundle_id}", { params: { path: { bundle_id: bundle.id }, header }, body })),
  );
}

export function useSetEnabled(id: string) {
  return useBundleChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/compliance-bundles/{bundle_id}", { params: { path: { bundle_id: id } }, body: { enabled } })),
  );
}

// The following changes name the version of the bundle that the user saw. The API refuses them if somebody else has
// changed the bundle, for example the entity types that an administrator acknowledges.

export function useArchive() {
  return useBundleChange(({ id, updated_at: version }: Bundle) =>
    dataOf(api.POST("/api/admin/compliance-bundles/{bundle_id}/archive", { params: { path: { bundle_id: id }, header: ifMatch(version) } })));
}

export function useActivate() {
  return useBundleChange(({ id, updated_at: version }: Bundle) =>
    dataOf(api.POST("/api/admin/compliance-bundles/{bundle_id}/activate", { params: { path: { bundle_id: id }, header: ifMatch(version) } })));
}

export function useAcknowledge() {
  return useBundleChange(({ id, updated_at: version }: Bundle) =>
    dataOf(api.POST("/api/admin/compliance-bundles/{bundle_id}/acknowledge", { params: { path: { bundle_id: id }, header: ifMatch(version) } })));
}

export function useDeleteBundle(id: string) {
  return useBundleChange(() => dataOf(api.DELETE("/api/admin/compliance-bundles/{bundle_id}", { params: { path: { bundle_id: id } } })));
}

/** All bundles as a file that another organization imports. */
export function useExportBundles() {
  return useMutation({ mutationFn: () => dataOf(api.GET("/api/admin/compliance-bundles-export/", { parseAs: "blob" })) });
}

export function useImportBundles() {
  return useBundleChange(({ records, mode }: { records: ImportedBundle[]; mode: "skip" | "replace" }) =>
    dataOf(api.POST("/api/admin/compliance-bundles-export/", { params: { query: { mode } }, body: records })),
  );
}

/** The report of the last days as a page for printing. */
export function useReport(days: PeriodDays) {
  return useMutation({
    mutationFn: () => dataOf(api.GET("/api/admin/compliance/report", { params: { query: { days, format: "html" } }, parseAs: "blob" })),
  });
}
