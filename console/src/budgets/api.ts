/** Budgets: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { BUDGET_SORTS } from "../sorts";

export { SCOPE_TYPES } from "./choices";

export type Budget = Schemas["Budget"];
export type NewBudget = Schemas["NewBudget"];
export type BudgetUpdate = Schemas["BudgetUpdate"];
export type ScopeType = Budget["scope_type"];
export type Period = Budget["period"];

export type Sort = (typeof BUDGET_SORTS)[number];

export const PERIODS: readonly Period[] = ["month", "day", "minute"];

/** A page of budgets, each with the amount spent. */
export function useBudgets(scopeType: ScopeType | undefined, sort: Sort, page: number) {
  return useQuery({
    queryKey: ["budgets", scopeType, sort, page],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const query = { scope_type: scopeType, sort, page, page_size: PAGE_SIZE };
      const { items, total } = await dataOf(api.GET("/api/admin/budgets", { params: { query } }));
      return { rows: items, total };
    },
  });
}

function useBudgetChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["budgets"] }),
  });
}

export function useCreateBudget() {
  return useBudgetChange((body: NewBudget) => dataOf(api.POST("/api/admin/budgets", { body })));
}

export function useUpdateBudget(budget: Budget) {
  const header = useIfMatch(budget);
  return useBudgetChange((body: BudgetUpdate) =>
    dataOf(api.PUT("/api/admin/budgets/{budget_id}", { params: { path: { budget_id: budget.id }, header }, body })),
  );
}

export function useDeleteBudget(id: string) {
  return useBudgetChange(() => dataOf(api.DELETE("/api/admin/budgets/{budget_id}", { params: { path: { budget_id: id } } })));
}
