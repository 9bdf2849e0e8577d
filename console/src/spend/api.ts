/** Spend by group, user or API key. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";

type Query = NonNullable<paths["/api/admin/usage/spend"]["get"]["parameters"]["query"]>;
export type SpentBy = NonNullable<Query["by"]>;
export type Sort = NonNullable<Query["sort"]>;
export type SpendItem = Schemas["SpendItem"];
/** What the page sums up by. Model aliases have totals of their own. */
export type SpendView = SpentBy | "model_alias";
export type AliasPart = Schemas["UsagePart"];
export type AliasPeriod = "week" | "month";
/** `custom` is the time between the days `from` and `to`. */
export type SpendPeriod = "week" | "month" | "quarter" | "custom";

export const PAGE_SIZE = 50;
export const DEFAULT_SORT: Sort = "-cost_usd";
const DAY_MS = 86_400_000;
const PERIOD_DAYS: Record<Exclude<SpendPeriod, "custom">, number> = { week: 7, month: 30, quarter: 90 };

export interface SpendFilters {
  by: SpentBy;
  period: SpendPeriod;
  from?: string | undefined;
  to?: string | undefined;
  user?: string | undefined;
  group?: string | undefined;
  sort?: Sort | undefined;
}

/** A page of spend, by default with the highest cost first. */
export function useSpend(filters: SpendFilters, page: number) {
  return useQuery({
    queryKey: ["spend", filters, page],
    placeholderData: keepPreviousData,
    queryFn: () => {
      const { by, user, group, sort } = filters;
      const query: Query = { by, ...daysOf(filters), sort: sort ?? DEFAULT_SORT, page, page_size: PAGE_SIZE };
      if (user !== undefined) query.user_id = user;
      if (group !== undefined) query.group_id = group;
      return dataOf(api.GET("/api/admin/usage/spend", { params: { query } }));
    },
  });
}

/** The usage of each model alias, or of each deployment of one alias. Those with the most requests come first. */
export function useAliasSpend(period: AliasPeriod, alias: string | undefined) {
  return useQuery({
    queryKey: ["spend", "aliases", period, alias],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const query = alias === undefined ? { period, by: "model_alias" as const } : { period, by: "deployment" as const, model_alias: alias };
      return (await dataOf(api.GET("/api/admin/usage/series", { params: { query } }))).parts;
    },
  });
}

/** Returns the first and the last day (UTC) of a period. The predefined periods have no last day, because they end
 * today. */
export function daysOf({ period, from, to }: Pick<SpendFilters, "period" | "from" | "to">): { from?: string; to?: string } {
  if (period === "custom") return { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  return { from: utcDay(PERIOD_DAYS[period] - 1) };
}

/** Returns the day (UTC) that was `daysAgo` days ago. */
export function utcDay(daysAgo: number): string {
  return new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10);
}
