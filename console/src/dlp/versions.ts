/** Versions of a rule: the query, and the fields that each version changed. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, listOf, type Schemas } from "../api/client";
import { ifMatch } from "../api/versions";
import { PAGE_SIZE } from "../parts/ListPanel";
import { dlpTexts, versionTexts } from "../texts/dlp";
import type { DlpRule, NewDlpRule } from "./api";

export type RuleVersion = Schemas["DlpRuleVersion"];
type Values = Record<string, unknown>;

export interface FieldChange {
  name: string;
  before: string;
  after: string;
}

/** A page of the versions of a rule, newest first. */
export function useVersions(ruleId: string, page: number) {
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  return useQuery({
    // The key begins with `dlp-rules`, so that changes of rules invalidate this list too.
    queryKey: ["dlp-rules", "versions", ruleId, query],
    placeholderData: keepPreviousData,
    queryFn: () => listOf(api.GET("/api/admin/dlp-rules/{rule_id}/versions", { params: { path: { rule_id: ruleId }, query } })),
  });
}

/** Restores all values of an earlier version. The API refuses this if the rule has changed since it was loaded. */
export function useRestore() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ rule: { id, updated_at: version }, values }: { rule: DlpRule; values: NewDlpRule }) =>
      dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: id }, header: ifMatch(version) }, body: values })),
    onSettled: () => client.invalidateQueries({ queryKey: ["dlp-rules"] }),
  });
}

/** Returns the fields that a version changed. Each field of the rule's configuration is treated as a field. */
export function changesOf({ old_values: before, new_values: after }: RuleVersion): FieldChange[] {
  const old = flat(before);
  const now = flat(after);
  return [...new Set([...Object.keys(now), ...Object.keys(old)])]
    .map((name) => ({ name: versionTexts.fields[name] ?? name, before: shown(name, old[name]), after: shown(name, now[name]) }))
    .filter(({ before: one, after: other }) => one !== other);
}

/** Returns the values of the rule after the change, or null if the version has none. */
export function ruleOf({ new_values: values }: RuleVersion): NewDlpRule | null {
  return values as NewDlpRule | null;
}

function flat(values: Values | null | undefined): Values {
  const { config_json: config, ...rest } = values ?? {};
  return { ...rest, ...(config as Values | undefined) };
}

function shown(name: string, value: unknown): string {
  const dlp = dlpTexts;
  const versions = versionTexts;
  if (value === undefined || value === null || value === "") return "";
  if (typeof value === "boolean") return value ? versions.yes : versions.no;
  if (Array.isArray(value)) return value.join(", ");
  if (name === "action_tier") return (dlp.tiers as Record<string, string>)[String(value)] ?? String(value);
  if (name === "detector_type") return (dlp.detectors as Record<string, string>)[String(value)] ?? String(value);
  return String(value);
}
