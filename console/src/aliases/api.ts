/** Model aliases: queries and changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { ALIAS_SORTS, COMPARED_PERIODS } from "./choices";

export type ModelAlias = Schemas["ModelAlias"];
export type NewModelAlias = Schemas["NewModelAlias"];
export type ModelAliasUpdate = Schemas["ModelAliasUpdate"];
export type Deployment = ModelAlias["deployments"][number];
export type Balance = ModelAlias["balance"];
export type ComparedDeployment = Schemas["DeploymentComparison"];
export type Sort = (typeof ALIAS_SORTS)[number];

export const BALANCES = ["weighted", "least_busy", "lowest_latency"] as const satisfies readonly Balance[];
export type ComparedPeriod = (typeof COMPARED_PERIODS)[number];
const PERIOD_DAYS: Record<ComparedPeriod, number> = { day: 1, week: 7, month: 31 };

export interface AliasFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
}

const BASE = "/api/v1/admin/model-aliases";
const ONE = "/api/v1/admin/model-aliases/{model_alias_id}";

function pathOf(id: string) {
  return { path: { model_alias_id: id } };
}

/** A page of the organization's aliases. */
export function useAliasPage(filters: AliasFilters, sort: Sort, page: number) {
  const query = { ...filters, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["model-aliases", "list", query],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { model_aliases: rows, total } = await dataOf(api.GET(BASE, { params: { query } }));
      return { rows, total };
    },
  });
}

/** An alias by its id. The page needs it if the URL refers to an alias that is not on the loaded page of the list. */
export function useAlias(id: string | undefined) {
  return useQuery({
    queryKey: ["model-aliases", "one", id],
    enabled: id !== undefined,
    queryFn: () => dataOf(api.GET(ONE, { params: pathOf(id ?? "") })),
  });
}

export function useComparison(id: string, period: ComparedPeriod) {
  return useQuery({
    queryKey: ["model-aliases", "comparison", id, period],
    placeholderData: keepPreviousData,
    queryFn: () => {
      const to = new Date();
      const from = new Date(to.getTime() - PERIOD_DAYS[period] * 24 * 3600 * 1000);
      const query = { from: from.toISOString(), to: to.toISOString() };
      return dataOf(api.GET(`${ONE}/comparison`, { params: { ...pathOf(id), query } }));
    },
  });
}

function useAliasChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => client.invalidateQueries({ queryKey: ["model-aliases"] }) });
}

export function useSaveAlias(alias: ModelAlias | undefined) {
  const header = useIfMatch(alias);
  return useAliasChange(({ name, ...body }: NewModelAlias) =>
    alias === undefined
      ? dataOf(api.POST(BASE, { body: { name, ...body } }))
      : dataOf(api.PUT(ONE, { params: { ...pathOf(alias.id), header }, body: body as ModelAliasUpdate })),
  );
}

export function useSetAliasEnabled(id: string) {
  return useAliasChange((enabled: boolean) =>
    dataOf(api.PUT(ONE, { params: pathOf(id), body: { enabled } as ModelAliasUpdate })),
  );
}

export function useDeleteAlias(id: string) {
  return useAliasChange(() => dataOf(api.DELETE(ONE, { params: pathOf(id) })));
}
