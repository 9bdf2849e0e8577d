/** Alert rules and their history: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import { DEFAULT_SORT, type SORTS } from "./choices";

export type AlertRule = Schemas["AlertRule"];
export type NewAlertRule = Schemas["NewAlertRule"];
export type AlertRuleUpdate = Schemas["AlertRuleUpdate"];
export type HistoryRecord = Schemas["HistoryRecord"];
export type Metric = AlertRule["metric_type"];
export type Comparison = AlertRule["comparison"];

export const COMPARISONS: readonly Comparison[] = ["gt", "gte", "lt", "lte"];
export const HISTORY_SIZE = 20;

export type Sort = (typeof SORTS)[number];

export interface AlertFilters {
  search?: string | undefined;
  metric_type?: Metric | undefined;
  enabled?: boolean | undefined;
  sort?: Sort | undefined;
}

/** A page of the alert rules. */
export function useAlertRules(filters: AlertFilters, page: number) {
  return useQuery({
    queryKey: ["alerts", "list", filters, page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      listOf<AlertRule>(api.GET("/api/alerts", {
        params: { query: { sort: DEFAULT_SORT, ...filters, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE } },
      })),
  });
}

/** An alert rule by its id. The page needs it if the URL refers to a rule that is not on the loaded page of the list. */
export function useAlertRule(id: string | undefined) {
  return useQuery({
    queryKey: ["alerts", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/alerts/{rule_id}", { params: { path: { rule_id: id ?? "" } } })),
  });
}

/** A page of the history of a rule, with one entry for each time that the rule triggered, newest first. */
export function useAlertHistory(id: string, page: number) {
  return useQuery({
    queryKey: ["alerts", id, "history", page],
    placeholderData: keepPreviousData,
    queryFn: () =>
      dataOf(api.GET("/api/alerts/{rule_id}/history", {
        params: { path: { rule_id: id }, query: { limit: HISTORY_SIZE, offset: (page - 1) * HISTORY_SIZE } },
      })),
  });
}

function useAlertChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["alerts"] }),
  });
}

export function useSaveAlertRule(rule: AlertRule | undefined) {
  const header = useIfMatch(rule);
  return useAlertChange((body: NewAlertRule) =>
    rule === undefined
      ? dataOf(api.POST("/api/alerts", { body }))
      : dataOf(api.PUT("/api/alerts/{rule_id}", { params: { path: { rule_id: rule.id }, header }, body })),
  );
}

export function useSetAlertEnabled(id: string) {
  return useAlertChange((enabled: boolean) => dataOf(api.PUT("/api/alerts/{rule_id}", { params: { path: { rule_id: id } }, body: { enabled } })));
}

export function useDeleteAlertRule(id: string) {
  return useAlertChange(() => dataOf(api.DELETE("/api/alerts/{rule_id}", { params: { path: { rule_id: id } } })));
}

export function useEvaluateAlerts() {
  return useAlertChange(() => dataOf(api.POST("/api/alerts/evaluate")));
}
