/** The catalog of models: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";

export type Model = Schemas["ModelConfig"];
export type ModelUpdate = Schemas["ModelUpdate"];
export type NewModel = Schemas["NewModel"];

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

/** Adds the models that the providers offer and the catalog lacks. */
export function useSyncModels() {
  return useModelChange(() => dataOf(api.POST("/api/admin/models/catalog/sync")));
}

/** The name by which people know a model. */
export function nameOf(model: Model): string {
  return model.display_name ?? model.model_id;
}
