/** Queries of the overview page. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useRights } from "../api/queries";

export type AnalyticsPeriod = "day" | "week" | "month";
export type Analytics = Schemas["Analytics"];
export type MetricsSummary = Schemas["MetricsSummary"];
export type ProviderHealth = Schemas["ProviderHealth"];

const REFRESH_MS = 30_000;

/** Figures of the last hour. Only for users who can read the organization's data. */
export function useMetrics() {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["metrics-summary"],
    enabled: seesAll,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/admin/system/metrics-summary")),
  });
}

/** Requests and cost by model. Only for users who can read the organization's data. */
export function useAnalytics(period: AnalyticsPeriod) {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["cost-analytics", period],
    enabled: seesAll,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/admin/cost-routing/analytics", { params: { query: { period } } })),
  });
}

/** The organization's requests and cost over time. Only for users who can read the organization's data. */
export function useUsageSeries(period: AnalyticsPeriod) {
  const { seesAll } = useRights();
  return useQuery({
    queryKey: ["usage-series", period],
    enabled: seesAll,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/admin/usage/series", { params: { query: { period } } })),
  });
}

export function useProviders() {
  return useQuery({
    queryKey: ["providers-health"],
    refetchInterval: REFRESH_MS,
    queryFn: () => dataOf(api.GET("/api/providers/health")),
  });
}
