/** The signed-in user's own usage. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { PAGE_SIZE } from "../parts/ListPanel";

export type UsageSummary = Schemas["UsageSummary"];
export type UsageModel = Schemas["UsageModel"];
export type UsageDay = Schemas["UsageDay"];
export type BudgetLeft = Schemas["BudgetLeft"];
export type UsagePeriod = "day" | "week" | "month";

const REFRESH_MS = 30_000;

/** The usage of a period, with a page of its models and the number of all of them. */
export function useUsageSummary(period: UsagePeriod, page = 1) {
  const query = { period, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["usage-summary", query],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: async () => {
      const call = api.GET("/api/v1/usage/summary", { params: { query } });
      const summary = await dataOf(call);
      return { ...summary, modelCount: Number((await call).response.headers.get("x-total-count")) };
    },
  });
}
