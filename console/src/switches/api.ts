/** Kill switches: their state, changes, and the propagation of changes. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { PAGE_SIZE } from "../parts/ListPanel";
import type { SwitchState } from "./choices";

export type ProviderSwitch = Schemas["ProviderSummary"];
export type ModelSwitch = ProviderSwitch["models"][number];
export type Reason = NonNullable<ModelSwitch["disabled_reason"]>;
export type RecentChange = Schemas["RecentChange"];

export const REASONS: readonly Reason[] = ["security_event", "cost_runaway", "maintenance", "other"];
const REFRESH_MS = 10_000;
const PENDING_REFRESH_MS = 1_000;
const RECENT_CHANGES = 20;

export interface SwitchFilters {
  search?: string | undefined;
  state?: SwitchState | undefined;
}

/** A page of models by provider. A provider without models is treated as a model. */
export function useSwitches({ search, state }: SwitchFilters, page: number) {
  const query = { search, kill_switch_active: state === "stopped" ? true : undefined, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    queryKey: ["kill-switches", "list", query],
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
    queryFn: () => listOf<ProviderSwitch>(api.GET("/api/v1/admin/kill-switch/providers", { params: { query } })),
  });
}

/** The latest changes. The query repeats more often while a worker or an outpost has not confirmed one of them. */
export function usePropagation() {
  return useQuery({
    queryKey: ["kill-switches", "propagation"],
    refetchInterval: ({ state }) => (state.data?.changes.some(isPending) === true ? PENDING_REFRESH_MS : REFRESH_MS),
    queryFn: async () => {
      const report = await dataOf(api.GET("/api/v1/admin/kill-switch/propagation", { params: { query: { limit: RECENT_CHANGES } } }));
      return { ...report, changes: report.changes.filter((change) => change.topic === "switch") };
    },
  });
}

export function isPending(change: RecentChange): boolean {
  return change.pending.length > 0 || change.outposts.some((outpost) => outpost.confirmed_at === null);
}

/** The target of a kill switch: a provider with all its models, or one model. */
export type Target = { provider: string } | { model: ModelSwitch };

export function useSwitch(target: Target) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (reason: Reason | null) => (reason === null ? release(target) : engage(target, reason)),
    // The result is shown at once. A worker that does not answer may delay the data that is loaded again.
    onSettled: () => void client.invalidateQueries({ queryKey: ["kill-switches"] }),
  });
}

async function engage(target: Target, reason: Reason) {
  const body = { reason };
  return "model" in target
    ? (await dataOf(api.POST("/api/v1/admin/kill-switch/models/{model_config_id}/disable", {
        params: { path: { model_config_id: target.model.id } }, body,
      }))).propagation
    : (await dataOf(api.POST("/api/v1/admin/kill-switch/providers/{provider}/disable", {
        params: { path: { provider: target.provider } }, body,
      }))).propagation;
}

async function release(target: Target) {
  return "model" in target
    ? (await dataOf(api.POST("/api/v1/admin/kill-switch/models/{model_config_id}/enable", {
        params: { path: { model_config_id: target.model.id } },
      }))).propagation
    : (await dataOf(api.POST("/api/v1/admin/kill-switch/providers/{provider}/enable", {
        params: { path: { provider: target.provider } },
      }))).propagation;
}
