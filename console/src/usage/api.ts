/** The signed-in user's own usage. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";

export type UsageSummary = Schemas["UsageSummary"];
export type UsageModel = Schemas["UsageModel"];
export type UsageDay = Schemas["UsageDay"];
export type BudgetLeft = Schemas["BudgetLeft"];
export type UsagePeriod = "day" | "week" | "month";

const REFRESH_MS = 30_000;

export function useUsageSummary(period: UsagePeriod) {
  return useQuery({
    queryKey: ["usage-summary", period],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/v1/usage/summary", { params: { query: { period } } })),
  });
}
