/** Rules for which models a group may call: queries and changes. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { ApiError } from "../api/errors";
import { ifMatch } from "../api/versions";

export type AccessRule = Schemas["ModelAccessRule"];
export type Access = AccessRule["access_type"];

export const PAGE_SIZE = 50;

/** A row of the matrix: a model with the rules of the shown groups. `access` is null if a rule refers to a model that is not
 * in the catalog. */
export type MatrixRow = Schemas["ModelRules"];

/** A page of models with the rules of these groups. `ruled` selects the models that are restricted or that a rule names.
 * While another page loads, the previous rows are returned, but not if they contain the rules of other groups. */
export function useMatrix(search: string, ruled: boolean, page: number, groups: string[] | undefined) {
  return useQuery({
    queryKey: ["groups", "matrix", groups?.join(" "), search, ruled, page],
    enabled: groups !== undefined,
    placeholderData: (previous: { rows: MatrixRow[]; total: number } | undefined, query) =>
      query?.queryKey[2] === groups?.join(" ") ? previous : undefined,
    queryFn: () =>
      listOf(api.GET("/api/admin/groups/model-access/models", {
        params: {
          query: { ...(search !== "" && { search }), ruled, group_id: groups ?? [], limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE },
        },
      })),
  });
}

/** A change of one rule. `before` is the rule that the user saw, or null if there was none. `after` is null if the rule is
 * removed. If `isRefused` is true, an earlier attempt was refused because of somebody else's change. */
export interface AccessChange {
  groupId: string;
  model: string;
  before: AccessRule | null;
  after: Access | null;
  isRefused: boolean;
}

/** Saves a change. The API has no operation that replaces a rule, so the old rule is removed first. The API refuses this
 * if somebody else has replaced the rule. After such a refusal, the change replaces whatever rule there is. */
export async function applyChange({ groupId, model, before, after, isRefused }: AccessChange): Promise<void> {
  if (before !== null || isRefused) {
    const header = isRefused || before === null ? {} : ifMatch(before.created_at);
    await dataOf(api.DELETE("/api/admin/groups/{group_id}/model-access/{model_id}", {
      params: { path: { group_id: groupId, model_id: model }, header },
    })).catch((error: unknown) => {
      const isRemoved = isRefused && error instanceof ApiError && error.status === 404;
      if (!isRemoved) throw error;
    });
  }
  if (after !== null) {
    await dataOf(api.POST("/api/admin/groups/{group_id}/model-access", {
      params: { path: { group_id: groupId } }, body: { model_id: model, access_type: after },
    }));
  }
}
