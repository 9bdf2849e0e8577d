/** Rules of model access: what groups may call. Queries and changes. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { Model } from "../models/api";

export type AccessRule = Schemas["ModelAccessRule"];
export type Access = AccessRule["access_type"];

export const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;

/** A row of the matrix. `model` is missing where only a rule remembers the name. */
export interface MatrixRow {
  name: string;
  model: Model | null;
}

export function fullName(model: Model): string {
  return `${model.provider}/${model.model_id}`;
}

/** The rules of all groups. */
export function useAccessRules() {
  return useQuery({
    queryKey: ["groups", "model-access"],
    queryFn: () => dataOf(api.GET("/api/admin/groups/model-access")),
  });
}

/** The whole catalog. The API has no filter for models with rules, so the page chooses them from all. */
export function useCatalog(search: string, enabled: boolean) {
  return useQuery({
    queryKey: ["models", "all", search],
    enabled,
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const models: Model[] = [];
      for (let page = 1; ; page++) {
        const { items, total } = await dataOf(api.GET("/api/admin/models/catalog/", {
          params: { query: { ...(search !== "" && { search }), page, per_page: MAX_PAGE_SIZE } },
        }));
        models.push(...items);
        if (items.length === 0 || models.length >= total) return models;
      }
    },
  });
}

/** A rule to be created, replaced or removed. */
export interface AccessChange {
  groupId: string;
  model: string;
  before: Access | null;
  after: Access | null;
}

/** The API has no operation that replaces a rule, so the old one is removed first. */
export async function applyChange({ groupId, model, before, after }: AccessChange): Promise<void> {
  if (before !== null) {
    await dataOf(api.DELETE("/api/admin/groups/{group_id}/model-access/{model_id}", { params: { path: { group_id: groupId, model_id: model } } }));
  }
  if (after !== null) {
    await dataOf(api.POST("/api/admin/groups/{group_id}/model-access", {
      params: { path: { group_id: groupId } }, body: { model_id: model, access_type: after },
    }));
  }
}
