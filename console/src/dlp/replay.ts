/** Recorded requests, and replays of changed DLP rules on them. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { api, dataOf, type Schemas } from "../api/client";
import type { DlpRule, NewDlpRule } from "./api";

export type Replayed = Schemas["Replayed"];
export type Sampling = Schemas["DlpSampling"];

export const MAX_REPLAYED_REQUESTS = 1000;
export const DEFAULT_REPLAYED_REQUESTS = 200;

/** A change of what is in force: all rules, or the ids of all suppressed patterns. */
export interface ReplayDraft {
  rules?: NewDlpRule[];
  suppressions?: string[];
}

interface Selection {
  last: number;
  days: number | null;
}

export function useSampling() {
  return useQuery({ queryKey: ["dlp-sampling"], queryFn: () => dataOf(api.GET("/api/v1/admin/org/dlp-sampling")) });
}

export function useUpdateSampling() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Sampling) => dataOf(api.PUT("/api/v1/admin/org/dlp-sampling", { body })),
    onSettled: () => client.invalidateQueries({ queryKey: ["dlp-sampling"] }),
  });
}

/** How many requests are recorded. */
export function useSampleCount() {
  return useQuery({
    queryKey: ["dlp-samples", "count"],
    queryFn: async () => (await dataOf(api.GET("/api/admin/dlp-rules/samples", { params: { query: { limit: 1 } } }))).total,
  });
}

/** A replay, and a function that stops waiting for it. */
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

/** All rules, with one of them changed, or with a further one. */
export function changedRules(rules: readonly DlpRule[], id: string | undefined, changed: NewDlpRule): NewDlpRule[] {
  const others = rules.map((rule) => (rule.id === id ? changed : bodyOf(rule)));
  return id === undefined ? [...others, changed] : others;
}

export function bodyOf({ detector_name, detector_type, entity_type, action_tier, enabled, confidence_threshold, config_json }: DlpRule): NewDlpRule {
  return { detector_name, detector_type, entity_type, action_tier, enabled, confidence_threshold, config_json };
}
