/** Routing policies: queries, changes and the simulation. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";

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

export interface RoutingFilters {
  enabled?: boolean | undefined;
  strategy?: Strategy | undefined;
  group?: string | undefined;
}

/** The organization's policies, the oldest first, which are at most 200 and come at once. */
export function useRoutingPolicies({ enabled, strategy, group }: RoutingFilters) {
  return useQuery({
    queryKey: ["routing-policies", { enabled, strategy, group }],
    placeholderData: keepPreviousData,
    queryFn: async () =>
      (await dataOf(api.GET("/api/admin/cost-routing/policies", { params: { query: { enabled, strategy, group_id: group } } }))).policies,
  });
}

function useRoutingChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["routing-policies"] }),
  });
}

export function useSavePolicy(id: string | undefined) {
  return useRoutingChange((body: NewRoutingPolicy) =>
    id === undefined
      ? dataOf(api.POST("/api/admin/cost-routing/policies", { body }))
      : dataOf(api.PUT("/api/admin/cost-routing/policies/{policy_id}", { params: { path: { policy_id: id } }, body })),
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
