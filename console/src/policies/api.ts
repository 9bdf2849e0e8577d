/** Policies: queries, changes and trials. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import type { paths } from "../api/schema";
import { useIfMatch } from "../api/versions";

type List = paths["/api/admin/policies"];
export type Policy = List["get"]["responses"][200]["content"]["application/json"][number];
export type NewPolicy = List["post"]["requestBody"]["content"]["application/json"];
export type PolicyAction = Policy["action"];
export type PolicyTrial = Schemas["PolicyTrial"];
export type PolicyTried = Schemas["PolicyTried"];
export type Replayed = Schemas["PoliciesReplayed"];

export const ACTIONS: readonly PolicyAction[] = ["ALLOW", "BLOCK", "REQUIRE_APPROVAL", "ROUTE", "LOG"];
/** Recorded requests of a dry run, the newest. */
const DRY_RUN_REQUESTS = 200;

/** All policies in the order of evaluation, which are at most a thousand and come at once. */
export function usePolicies() {
  return useQuery({ queryKey: ["policies"], queryFn: () => dataOf(api.GET("/api/admin/policies")) });
}

function usePolicyChange<Input, Output>(change: (input: Input) => Promise<Output>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: ["policies"] }),
  });
}

export function useSavePolicy(policy: Policy | undefined) {
  const headers = useIfMatch(policy);
  return usePolicyChange((body: NewPolicy) =>
    policy === undefined
      ? dataOf(api.POST("/api/admin/policies", { body }))
      : dataOf(api.PUT("/api/admin/policies/{policy_id}", {
          params: { path: { policy_id: policy.id } }, headers, body: { ...body, terminal: body.terminal ?? body.action !== "LOG" },
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

/** What a draft would have decided about recorded requests, enabled or not, beside the policies in force: as an additional
 * policy, or in the place of the one with the id `replaces`. */
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
