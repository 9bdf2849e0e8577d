/** Versions of a rule: their query, and which fields each changed. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, type Schemas } from "../api/client";
import { ifMatch } from "../api/versions";
import { texts } from "../texts";
import type { DlpRule, NewDlpRule } from "./api";

export type RuleVersion = Schemas["DlpRuleVersion"];
type Values = Record<string, unknown>;

export interface FieldChange {
  name: string;
  before: string;
  after: string;
}

export function useVersions(ruleId: string) {
  return useQuery({
    // Changes of rules invalidate this list, too.
    queryKey: ["dlp-rules", "versions", ruleId],
    queryFn: () => dataOf(api.GET("/api/admin/dlp-rules/{rule_id}/versions", { params: { path: { rule_id: ruleId } } })),
  });
}

/** Gives the rule all values of an earlier version, unless somebody has changed it since it was loaded. */
export function useRestore(rule: DlpRule) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: NewDlpRule) =>
      dataOf(api.PUT("/api/admin/dlp-rules/{rule_id}", { params: { path: { rule_id: rule.id } }, body, headers: ifMatch(rule.updated_at) })),
    onSettled: () => client.invalidateQueries({ queryKey: ["dlp-rules"] }),
  });
}

/** The fields that a version changed, with the rule's configuration as fields of their own. */
export function changesOf({ old_values: before, new_values: after }: RuleVersion): FieldChange[] {
  const old = flat(before);
  const now = flat(after);
  return [...new Set([...Object.keys(now), ...Object.keys(old)])]
    .map((name) => ({ name: texts.versions.fields[name] ?? name, before: shown(name, old[name]), after: shown(name, now[name]) }))
    .filter(({ before: one, after: other }) => one !== other);
}

/** The rule as a version left it. */
export function ruleOf({ new_values: values }: RuleVersion): NewDlpRule | null {
  return values as NewDlpRule | null;
}

function flat(values: Values | null | undefined): Values {
  const { config_json: config, ...rest } = values ?? {};
  return { ...rest, ...(config as Values | undefined) };
}

function shown(name: string, value: unknown): string {
  const { dlp, versions } = texts;
  if (value === undefined || value === null || value === "") return "";
  if (typeof value === "boolean") return value ? versions.yes : versions.no;
  if (Array.isArray(value)) return value.join(", ");
  if (name === "action_tier") return (dlp.tiers as Record<string, string>)[String(value)] ?? String(value);
  if (name === "detector_type") return (dlp.detectors as Record<string, string>)[String(value)] ?? String(value);
  return String(value);
}
