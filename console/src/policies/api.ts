/** Policies: queries, changes and trials. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";
import { useIfMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { POLICY_SORTS } from "../sorts";
import { ACTIONS } from "./choices";

export { ACTIONS };

type List = paths["/api/admin/policies"];
export type Policy = List["get"]["responses"][200]["content"]["application/json"][number];
export type NewPolicy = List["post"]["requestBody"]["content"]["application/json"];
export type PolicyAction = Policy["action"];
export type PolicyTrial = Schemas["PolicyTrial"];
export type PolicyTried = Schemas["PolicyTried"];
export type Replayed = Schemas["PoliciesReplayed"];

/** A dry run uses this many of the newest recorded requests. */
const DRY_RUN_REQUESTS = 200;

export type Sort = (typeof POLICY_SORTS)[number];

export interface PolicyFilters {
  search?: string | undefined;
  action?: PolicyAction | undefined;
  enabled?: boolean | undefined;
}

/** A page of policies. */
export function usePolicies(filters: PolicyFilters, sort: Sort, page: number) {
  const query = { ...filters, sort, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["policies", query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/policies", { params: { query } })),
  });
}

function usePolicyChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["policies"] }),
  });
}

export function useSavePolicy(policy: Policy | undefined) {
  const header = useIfMatch(policy);
  return usePolicyChange((body: NewPolicy) =>
    policy === undefined
      ? dataOf(api.POST("/api/admin/policies", { body }))
      : dataOf(api.PUT("/api/admin/policies/{policy_id}", {
          params: { path: { policy_id: policy.id }, header }, body: { ...body, terminal: body.terminal ?? body.action !== "LOG" },
        })),
  );
}

export function useSetEnabled(id: string) {
  return usePolicyChange((enabled: boolean) =>
    dataOf(api.PUT("/api/admin/policies/{policy_id}", { params: { path: { policy_id: id } }, body: { enabled } })),
  );
}

export function useDeletePolicy(id: string) {
  return usePolicyChange(() => dataOf(api.DELETE("/api/admin/policies/{policy_id}", { params: { path: { policy_id: id } } })));
}

export function useTestPolicies() {
  return useMutation({ mutationFn: (body: PolicyTrial) => dataOf(api.POST("/api/admin/policies/test", { body })) });
}

/** Tests an unsaved policy on recorded requests, as if it were enabled. The policy is added to the active policies,
 * or replaces the policy with the id `replaces`. */
export function useDryRun(replaces: string | undefined) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (policy: NewPolicy): Promise<Replayed> => {
      const draft = { ...policy, enabled: true };
      const recorded = { last: DRY_RUN_REQUESTS };
      if (replaces === undefined) return dataOf(api.POST("/api/admin/policies/replay", { body: { add_rule: draft, recorded } }));
      const policies = await client.fetchQuery({ queryKey: ["policies"], queryFn: () => dataOf(api.GET("/api/admin/policies")) });
      const rules = policies.map((other) => (other.id === replaces ? draft : bodyOf(other)));
      return dataOf(api.POST("/api/admin/policies/replay", { body: { rules, recorded } }));
    },
  });
}

function bodyOf({ name, description, priority, enabled, condition, action, route_to, terminal, message }: Policy): NewPolicy {
  return { name, description, priority, enabled, condition, action, route_to, terminal, message };
}
