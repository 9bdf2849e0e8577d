/** DLP rules: queries, changes and trials. */
import { keepPreviousData, type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import type { Detector } from "./detectors";

export type DlpRule = Schemas["DlpRule"];
export type NewDlpRule = Schemas["NewDlpRule"];
export type DlpRuleUpdate = Schemas["DlpRuleUpdate"];
export type Tier = DlpRule["action_tier"];
export type Evaluation = Schemas["Evaluation"];

export const TIERS: readonly Tier[] = ["log_only", "redact", "prompt", "block"];

export interface RuleFilters {
  enabled?: boolean | undefined;
  detector?: Detector | undefined;
}

/** The organization's rules, which are at most a thousand and come at once. */
export function useDlpRules(filters: RuleFilters) {
  return useQuery({ ...rulesQuery(filters), placeholderData: keepPreviousData });
}

/** All rules, for code outside of components. */
export function fetchDlpRules(client: QueryClient): Promise<DlpRule[]> {
  return client.fetchQuery(rulesQuery({}));
}

function rulesQuery({ enabled, detector }: RuleFilters) {
  return queryOptions({
    queryKey: ["dlp-rules", { enabled, detector }],
    queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/", { params: { query: { enabled, detector_type: detector } } })),
  });
}

function useRuleChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["dlp-rules"] }),
  });
}

export function useSaveRule(rule: DlpRule | undefined) {
  const headers = useIfMatch(rule);
  return useRuleChange((body: NewDlpRule) =>
    rule === undefined
      ? dataOf(api.POST("/api/admin/dlp-rules/", { body }))
      : dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: rule.id } }, body, headers })),
  );
}

export function useUpdateRule(id: string) {
  return useRuleChange((body: DlpRuleUpdate) =>
    dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: id } }, body })),
  );
}

export function useDeleteRule(id: string) {
  return useRuleChange(() => dataOf(api.DELETE("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: id } } })));
}

export function useTestPattern() {
  return useMutation({
    mutationFn: (body: Schemas["NewTest"]) => dataOf(api.POST("/api/admin/dlp-rules/test", { body })),
  });
}

export function useEvaluate() {
  return useMutation({
    mutationFn: (text: string) => dataOf(api.POST("/api/admin/dlp-rules/evaluate", { body: { text } })),
  });
}
