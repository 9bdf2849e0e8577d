/** Routing policies: queries, changes and the simulation. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { ROUTING_SORTS } from "../sorts";

export { STRATEGIES } from "./choices";

type List = paths["/api/admin/cost-routing/policies"];
export type RoutingPolicy = List["get"]["responses"][200]["content"]["application/json"]["policies"][number];
export type NewRoutingPolicy = List["post"]["requestBody"]["content"]["application/json"];
export type Strategy = RoutingPolicy["strategy"];
export type Capability = RoutingPolicy["model_filters"]["required_capabilities"][number];
export type CapAction = NonNullable<RoutingPolicy["cost_cap"]>["action_on_exceed"];
export type Simulation = Schemas["Simulation"];
export type Simulated = Schemas["Simulated"];
export type ConsideredModel = Simulated["candidates"][number];

export const CAPABILITIES: readonly Capability[] = ["vision", "function_calling", "json_mode", "streaming", "code_execution"];
export const CAP_ACTIONS: readonly CapAction[] = ["block", "use_cheapest", "warn"];

export type Sort = (typeof ROUTING_SORTS)[number];

export interface RoutingFilters {
  search?: string | undefined;
  enabled?: boolean | undefined;
  strategy?: Strategy | undefined;
  group?: string | undefined;
}

/** A page of the organization's policies. */
export function useRoutingPolicyPage({ search, enabled, strategy, group }: RoutingFilters, sort: Sort, page: number) {
  const query = { search, enabled, strategy, group_id: group, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["routing-policies", "list", query],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { policies, total } = await dataOf(api.GET("/api/admin/cost-routing/policies", { params: { query } }));
      return { rows: policies, total };
    },
  });
}

/** A policy by its id. */
export function useRoutingPolicy(id: string | null) {
  return useQuery({
    queryKey: ["routing-policies", "one", id],
    enabled: id !== null,
    queryFn: () => dataOf(api.GET("/api/admin/cost-routing/policies/{policy_id}", { params: { path: { policy_id: id ?? "" } } })),
  });
}

function useRoutingChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["routing-policies"] }),
  });
}

export function useSavePolicy(policy: RoutingPolicy | undefined) {
  const header = useIfMatch(policy);
  return useRoutingChange((body: NewRoutingPolicy) =>
    policy === undefined
      ? dataOf(api.POST("/api/admin/cost-routing/policies", { body }))
      : dataOf(api.PUT("/api/admin/cost-routing/policies/{policy_id}", { params: { path: { policy_id: policy.policy_id }, header }, body })),
  );
}

export function useSetEnabled(id: string) {
  return useRoutingChange((enabled: boolean) =>
    dataOf(api.PATCH("/api/admin/cost-routing/policies/{policy_id}", { params: { path: { policy_id: id } }, body: { enabled } })),
  );
}

export function useDeletePolicy(id: string) {
  return useRoutingChange(() =>
    dataOf(api.DELETE("/api/admin/cost-routing/policies/{policy_id}", { params: { path: { policy_id: id } } })),
  );
}

export function useSimulate() {
  return useMutation({
    mutationFn: (body: Simulation) => dataOf(api.POST("/api/admin/cost-routing/simulate", { body })),
  });
}

/** Names of active models, for suggestions. */
export function useModelNames() {
  return useQuery({
    queryKey: ["models", "names"],
    staleTime: 60_000,
    queryFn: async () => {
      const query = { is_active: true, page: 1, per_page: SUGGESTED_MODELS };
      const { items } = await dataOf(api.GET("/api/admin/models/catalog/", { params: { query } }));
      return items.map(({ provider, model_id: id }) => `${provider}/${id}`);
    },
  });
}

const SUGGESTED_MODELS = 200;
