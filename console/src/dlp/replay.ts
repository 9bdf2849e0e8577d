/** Recorded requests, and replays of changed DLP rules on them. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, dataOf, type Schemas } from "../api/client";
import { changeOf, invalidateSettings, versionedOf } from "../api/versions";
import type { DlpRule, NewDlpRule } from "./api";

export type Replayed = Schemas["Replayed"];
export type Sampling = Schemas["DlpSampling"];

export const MAX_REPLAYED_REQUESTS = 1000;
export const DEFAULT_REPLAYED_REQUESTS = 200;

/** The changed state that a replay tests: `rules` replaces all rules, `suppressions` replaces the ids of all suppressed
 * patterns. */
export interface ReplayDraft {
  rules?: NewDlpRule[];
  suppressions?: string[];
}

interface Selection {
  last: number;
  days: number | null;
}

export function useSampling() {
  return useQuery({ queryKey: ["dlp-sampling"], queryFn: () => versionedOf(api.GET("/api/v1/admin/org/dlp-sampling")) });
}

export function useUpdateSampling() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ version, ...body }: Schemas["DlpSamplingUpdate"] & { version: string }) =>
      changeOf(version, (header) => api.PUT("/api/v1/admin/org/dlp-sampling", { params: { header }, body })),
    onSettled: () => invalidateSettings(client),
  });
}

/** The number of recorded requests. */
export function useSampleCount() {
  return useQuery({
    queryKey: ["dlp-samples", "count"],
    queryFn: async () => (await dataOf(api.GET("/api/admin/dlp-rules/samples", { params: { query: { limit: 1 } } }))).total,
  });
}

/** Returns the mutation that runs a replay, and a function that aborts its request. */
export function useReplay() {
  const controller = useRef<AbortController>(null);
  const replay = useMutation({
    mutationFn: async ({ draft, recorded }: { draft: ReplayDraft; recorded: Selection }) => {
      controller.current = new AbortController();
      const body = { ...draft, recorded };
      return dataOf(api.POST("/api/admin/dlp-rules/replay", { body, signal: controller.current.signal }));
    },
  });
  const stop = () => {
    controller.current?.abort();
    replay.reset();
  };
  return { replay, stop };
}

/** Returns all rules with one change: `changed` replaces the rule with the id, or is added if `id` is undefined. */
export function changedRules(rules: readonly DlpRule[], id: string | undefined, changed: NewDlpRule): NewDlpRule[] {
  const others = rules.map((rule) => (rule.id === id ? changed : bodyOf(rule)));
  return id === undefined ? [...others, changed] : others;
}

export function bodyOf({ detector_name, detector_type, entity_type, action_tier, enabled, confidence_threshold, config_json }: DlpRule): NewDlpRule {
  return { detector_name, detector_type, entity_type, action_tier, enabled, confidence_threshold, config_json };
}
