/** Budgets: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";

export { SCOPE_TYPES } from "./choices";

export type Budget = Schemas["Budget"];
export type NewBudget = Schemas["NewBudget"];
export type BudgetUpdate = Schemas["BudgetUpdate"];
export type ScopeType = Budget["scope_type"];
export type Period = Budget["period"];

export const PAGE_SIZE = 50;
export const PERIODS: readonly Period[] = ["month", "day", "minute"];

/** A page of budgets, newest first, each with what is spent of it. */
export function useBudgets(scopeType: ScopeType | undefined, page: number) {
  return useQuery({
    queryKey: ["budgets", scopeType, page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      dataOf(api.GET("/api/admin/budgets", {
        params: { query: { ...(scopeType !== undefined && { scope_type: scopeType }), page, page_size: PAGE_SIZE } },
      })),
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
  const headers = useIfMatch(budget);
  return useBudgetChange((body: BudgetUpdate) =>
    dataOf(api.PUT("/api/admin/budgets/{budget_id}", { params: { path: { budget_id: budget.id } }, body, headers })),
  );
}

export function useDeleteBudget(id: string) {
  return useBudgetChange(() => dataOf(api.DELETE("/api/admin/budgets/{budget_id}", { params: { path: { budget_id: id } } })));
}
