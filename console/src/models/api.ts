/** The catalog of models: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ApiError } from "../api/errors";
import { paced } from "../api/paced";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { MODEL_SORTS } from "../sorts";

export type Model = Schemas["ModelConfig"];
export type ModelUpdate = Schemas["ModelUpdate"];
export type NewModel = Schemas["NewModel"];
export type Discovered = Schemas["gatehouse__platform__routing__model_catalog__schemas__DiscoveredModel"];
export type NewEndpoint = Schemas["NewByoe"];

export type Sort = (typeof MODEL_SORTS)[number];

export interface ModelFilters {
  search?: string | undefined;
  provider?: string | undefined;
  is_active?: boolean | undefined;
}

export function useModels(filters: ModelFilters, page: number, sort: Sort = "-created_at") {
  return useQuery({
    queryKey: ["models", filters, page, sort],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { items, total } = await dataOf(api.GET("/api/admin/models/catalog/", { params: { query: { ...filters, sort, page, per_page: PAGE_SIZE } } }));
      return { rows: items, total };
    },
  });
}

function useModelChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all(["models", "providers", "kill-switches"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}

export function useCreateModel() {
  return useModelChange((body: NewModel) => dataOf(api.POST("/api/admin/models/catalog/", { body })));
}

export function useUpdateModel(model: Model) {
  const header = useIfMatch(model);
  return useModelChange((body: ModelUpdate) =>
    dataOf(api.PUT("/api/admin/models/catalog/{model_config_id}", { params: { path: { model_config_id: model.id }, header }, body })),
  );
}

export function useSetActive(id: string) {
  return useModelChange((isActive: boolean) =>
    dataOf(api.PUT("/api/admin/models/catalog/{model_config_id}", { params: { path: { model_config_id: id } }, body: { is_active: isActive } })),
  );
}

export function useDeleteModel(id: string) {
  return useModelChange(() =>
    dataOf(api.DELETE("/api/admin/models/catalog/{model_config_id}", { params: { path: { model_config_id: id } } })),
  );
}

/** Adds all models that the providers offer and that are not in the catalog. */
export function useSyncModels() {
  return useModelChange(() => dataOf(api.POST("/api/admin/models/catalog/sync")));
}

/** The models that the providers offer. The API requests them from all providers, so a failed query is not retried. */
export function useDiscovered() {
  return useQuery({ queryKey: ["discovered-models"], gcTime: 0, retry: false, queryFn: () => dataOf(api.GET("/api/admin/models/catalog/discover")) });
}

/** Adds models that providers offer, one after the other, until `signal` aborts. A model that somebody else has added
 * in the meantime is treated as added. Added models are marked in the list of offered models, even if a later model
 * fails. */
export function useAddDiscovered() {
  const client = useQueryClient();
  return useModelChange(async ({ chosen, signal, onAdded }: { chosen: Discovered[]; signal: AbortSignal; onAdded: (model: Discovered) => void }) => {
    const added = new Set<string>();
    try {
      for (const model of chosen) {
        await paced(() => addDiscovered(model), signal);
        added.add(discoveredId(model));
        onAdded(model);
      }
    } finally {
      client.setQueryData<Discovered[]>(["discovered-models"], (models) =>
        models?.map((model) => (added.has(discoveredId(model)) ? { ...model, already_in_catalog: true } : model)));
    }
  });
}

export function discoveredId({ provider, model_id: id }: Discovered): string {
  return `${provider}/${id}`;
}

async function addDiscovered({ provider, model_id, display_name, context_window, supports_vision, max_tokens }: Discovered): Promise<void> {
  const body: NewModel = {
    provider, model_id, display_name, context_window, supports_vision, max_output_tokens: max_tokens, is_active: true, is_default: false, access: "open",
  };
  try {
    await dataOf(api.POST("/api/admin/models/catalog/", { body }));
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
}

/** Adds an endpoint of the organization's own, with its models. */
export function useCreateEndpoint() {
  return useModelChange((body: NewEndpoint) => dataOf(api.POST("/api/admin/providers/byoe", { body })));
}

/** Returns the display name of a model, or its id if it has none. */
export function nameOf(model: Model): string {
  return model.display_name ?? model.model_id;
}
