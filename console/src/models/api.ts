/** The catalog of models: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { paced } from "../api/paced";
import { useIfMatch } from "../api/versions";

export type Model = Schemas["ModelConfig"];
export type ModelUpdate = Schemas["ModelUpdate"];
export type NewModel = Schemas["NewModel"];
export type Discovered = Schemas["gatehouse__platform__routing__model_catalog__schemas__DiscoveredModel"];
export type NewEndpoint = Schemas["NewByoe"];

export const PAGE_SIZE = 50;

export interface ModelFilters {
  search?: string | undefined;
  provider?: string | undefined;
  is_active?: boolean | undefined;
}

export function useModels(filters: ModelFilters, page: number) {
  return useQuery({
    queryKey: ["models", filters, page],
    placeholderData: keepPreviousData,
    queryFn: () => dataOf(api.GET("/api/admin/models/catalog/", { params: { query: { ...filters, page, per_page: PAGE_SIZE } } })),
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
  const headers = useIfMatch(model);
  return useModelChange((body: ModelUpdate) =>
    dataOf(api.PUT("/api/admin/models/catalog/{model_config_id}", { params: { path: { model_config_id: model.id } }, body, headers })),
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

/** Adds all models that the providers offer and the catalog lacks. */
export function useSyncModels() {
  return useModelChange(() => dataOf(api.POST("/api/admin/models/catalog/sync")));
}

/** The models that the providers offer. All providers are asked, so it is not repeated by itself. */
export function useDiscovered() {
  return useQuery({ queryKey: ["discovered-models"], gcTime: 0, retry: false, queryFn: () => dataOf(api.GET("/api/admin/models/catalog/discover")) });
}

/** Adds models that providers offer, one after the other. */
export function useAddDiscovered() {
  return useModelChange(async (chosen: Discovered[]) => {
    const { signal } = new AbortController();
    for (const { provider, model_id, display_name, context_window, supports_vision, max_tokens } of chosen) {
      const body: NewModel = {
        provider, model_id, display_name, context_window, supports_vision, max_output_tokens: max_tokens, is_active: true, is_default: false, access: "open",
      };
      await paced(() => dataOf(api.POST("/api/admin/models/catalog/", { body })), signal);
    }
  });
}

/** Adds an endpoint of the organization's own, with its models. */
export function useCreateEndpoint() {
  return useModelChange((body: NewEndpoint) => dataOf(api.POST("/api/admin/providers/byoe", { body })));
}

/** The name by which people know a model. */
export function nameOf(model: Model): string {
  return model.display_name ?? model.model_id;
}
