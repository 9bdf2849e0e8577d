/** DLP rules: queries, changes and trials. */
import { keepPreviousData, type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { DLP_RULE_SORTS } from "../sorts";
import type { Detector } from "./detectors";

export type DlpRule = Schemas["DlpRule"];
export type NewDlpRule = Schemas["NewDlpRule"];
export type Tier = DlpRule["action_tier"];
export type Evaluation = Schemas["Evaluation"];

export const TIERS: readonly Tier[] = ["log_only", "redact", "prompt", "block"];

export interface RuleFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
  detector?: Detector | undefined;
}

export type RuleSort = (typeof DLP_RULE_SORTS)[number];

/** A page of the organization's rules. */
export function useDlpRulePage({ search, enabled, detector }: RuleFilters, sort: RuleSort, page: number) {
  const query = { search, enabled, detector_type: detector, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["dlp-rules", "list", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/dlp-rules/", { params: { query } })),
  });
}

/** A rule by its id. The page needs it if the URL refers to a rule that is not on the loaded page of the list. */
export function useDlpRule(id: string | undefined) {
  return useQuery({
    queryKey: ["dlp-rules", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: id ?? "" } } })),
  });
}

const ALL_RULES = queryOptions({ queryKey: ["dlp-rules", "all"], queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/")) });

/** All rules of the organization. A replay needs the complete list. */
export function useDlpRules() {
  return useQuery(ALL_RULES);
}

/** Fetches all rules. For event handlers, which cannot call a hook. */
export function fetchDlpRules(client: QueryClient): Promise<DlpRule[]> {
  return client.fetchQuery(ALL_RULES);
}

function useRuleChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["dlp-rules"] }),
  });
}

export function useSaveRule(rule: DlpRule | undefined) {
  const header = useIfMatch(rule);
  return useRuleChange((body: NewDlpRule) =>
    rule === undefined
      ? dataOf(api.POST("/api/admin/dlp-rules/", { body }))
      : dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: rule.id }, header }, body })),
  );
}

export function useSetRuleEnabled(id: string) {
  return useRuleChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: id } }, body: { enabled } })),
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
