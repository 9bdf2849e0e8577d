/** Spend by group, user or API key. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";

type Query = NonNullable<paths["/api/admin/usage/spend"]["get"]["parameters"]["query"]>;
export type SpendGrouping = NonNullable<Query["by"]>;
export type Sort = NonNullable<Query["sort"]>;
export type SpendItem = Schemas["SpendItem"];
/** What the page sums up by. Model aliases have totals of their own. */
export type SpendView = SpendGrouping | "model_alias";
type AliasQuery = NonNullable<paths["/api/admin/usage/spend/model-aliases"]["get"]["parameters"]["query"]>;
export type AliasSort = NonNullable<AliasQuery["sort"]>;
export type AliasSpendItem = Schemas["AliasSpendItem"];
export type AliasPeriod = "week" | "month";
/** `custom` is the time between the days `from` and `to`. */
export type SpendPeriod = "week" | "month" | "quarter" | "custom";

export const PAGE_SIZE = 50;
export const DEFAULT_SORT = "-cost_usd" satisfies Sort & AliasSort;
const DAY_MS = 86_400_000;
const PERIOD_DAYS: Record<Exclude<SpendPeriod, "custom">, number> = { week: 7, month: 30, quarter: 90 };

export interface SpendFilters {
  by: SpendGrouping;
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

/** A page of model aliases, or of the deployments of one alias. */
export function useAliasSpend(period: AliasPeriod, alias: string | undefined, sort: AliasSort, page: number) {
  return useQuery({
    queryKey: ["spend", "aliases", period, alias, sort, page],
    placeholderData: keepPreviousData,
    queryFn: () => {
      const query: AliasQuery = { by: alias === undefined ? "model_alias" : "deployment", ...daysOf({ period }), sort, page, page_size: PAGE_SIZE };
      if (alias !== undefined) query.model_alias = alias;
      return dataOf(api.GET("/api/admin/usage/spend/model-aliases", { params: { query } }));
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
