/** The model registry: queries, changes, discovery and files. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ifMatch, useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { REGISTRY_SORTS } from "../sorts";

export { STATUSES, TIERS } from "./choices";

export type RegisteredModel = Schemas["RegisteredModel"];
export type NewRegisteredModel = Schemas["NewRegisteredModel"];
export type RegisteredModelUpdate = Schemas["RegisteredModelUpdate"];
export type Evidence = Schemas["Evidence"];
export type EvidenceEvent = Evidence["history"][number];
export type Discovery = Schemas["Discovery-Input"];
export type Discovered = Schemas["Discovered"];
export type RiskTier = RegisteredModel["risk_tier"];
export type Status = RegisteredModel["validation_status"];

export type Sort = (typeof REGISTRY_SORTS)[number];

/** Requests variant B of a response (docs/variants.md), in which tags have values. */
const READING = { header: { "x-api-variant": "b" } } as const;
/** Sends a change in variant A, which accepts entries without a tier. */
const WRITING = { header: { "x-api-variant": "a" } } as const;

export interface RegistryFilters {
  search?: string | undefined;
  provider?: string | undefined;
  tier?: RiskTier | undefined;
  status?: Status | undefined;
}

export function useRegistry(filters: RegistryFilters, sort: Sort, page: number) {
  return useQuery({
    queryKey: ["registry", "list", filters, sort, page],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { search, provider, tier, status } = filters;
      const query = { search, provider, risk_tier: tier, validation_status: status, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
      const list = await dataOf(api.GET("/api/admin/models", { params: { ...READING, query } }));
      return { total: list.total, rows: "models" in list ? list.models : list.items };
    },
  });
}

/** The evidence of an entry. It is loaded each time the dialog opens, because the dialog keeps what it shows first. */
export function useEvidence(id: string) {
  return useQuery({
    queryKey: ["registry", "evidence", id],
    gcTime: 0,
    queryFn: () => dataOf(api.GET("/api/admin/models/{registered_model_id}/evidence", {
      params: { ...READING, path: { registered_model_id: id } },
    })),
  });
}

function useRegistryChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["registry"] }),
  });
}

export function useRegisterModel() {
  return useRegistryChange((body: NewRegisteredModel) => dataOf(api.POST("/api/admin/models", { params: WRITING, body })));
}

/** Changes the entry of a form. */
export function useUpdateEntry(entry: RegisteredModel | undefined) {
  const header = useIfMatch(entry);
  return useRegistryChange((body: RegisteredModelUpdate) =>
    dataOf(api.PUT("/api/admin/models/{registered_model_id}", {
      params: { path: { registered_model_id: entry?.id ?? "" }, header: { ...WRITING.header, ...header } }, body,
    })),
  );
}

/** Changes the status. The API refuses this if somebody else has changed the entry that the page shows. */
export function useMoveEntry() {
  return useRegistryChange(({ entry: { id, updated_at: version }, status }: { entry: RegisteredModel; status: Status }) =>
    dataOf(api.PUT("/api/admin/models/{registered_model_id}", {
      params: { path: { registered_model_id: id }, header: { ...WRITING.header, ...ifMatch(version) } }, body: { validation_status: status },
    })),
  );
}

export function useDeleteEntry(id: string) {
  return useRegistryChange(() =>
    dataOf(api.DELETE("/api/admin/models/{registered_model_id}", { params: { path: { registered_model_id: id } } })),
  );
}

export function useDiscover() {
  return useRegistryChange((body: Discovery) => dataOf(api.POST("/api/admin/models/discover", { params: WRITING, body })));
}

/** Exports the entries that match the filters as a CSV file. The export ignores the search text, because the API's
 * export has no search. */
export function useInventory({ provider, tier, status }: RegistryFilters) {
  return useMutation({
    mutationFn: () => {
      const query = { format: "csv" as const, provider, risk_tier: tier, validation_status: status };
      return dataOf(api.GET("/api/admin/model-inventory-export", { params: { ...READING, query }, parseAs: "blob" }));
    },
  });
}

/** Returns the name of a model in requests: `provider/model-id`. */
export function nameOf({ provider, model_id: id }: Pick<RegisteredModel, "provider" | "model_id">): string {
  return `${provider}/${id}`;
}

/** Converts tags to lines of the form `key` or `key=value`. */
export function linesOfTags(tags: RegisteredModel["tags"]): string[] {
  if (Array.isArray(tags)) return tags;
  return Object.entries(tags).map(([key, value]) => (value === "" ? key : `${key}=${value}`));
}

export function tagsOfLines(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(lines.map((line) => {
    const [key = "", ...rest] = line.split("=");
    return [key.trim(), rest.join("=").trim()];
  }));
}
