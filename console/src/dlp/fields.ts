/** Converts between the rule of the API and the fields of the form. */
import { linesOf, textOf } from "../parts/lines";
import type { DlpRule, NewDlpRule, Tier } from "./api";
import type { Detector } from "./detectors";

export interface RuleFields {
  detector_name: string;
  detector_type: Detector;
  entity_type: string;
  action_tier: Tier;
  confidence_threshold: number;
  enabled: boolean;
  pattern: string;
  context: string;
  entities: string;
  labels: string;
  threshold: number;
  reversible: boolean;
}

const DEFAULT_THRESHOLD = 0.5;

export function fieldsOf(rule: DlpRule | undefined): RuleFields {
  const config = rule?.config_json ?? {};
  return {
    detector_name: rule?.detector_name ?? "",
    detector_type: rule?.detector_type ?? "regex",
    entity_type: rule?.entity_type ?? "",
    action_tier: rule?.action_tier ?? "redact",
    confidence_threshold: rule?.confidence_threshold ?? DEFAULT_THRESHOLD,
    enabled: rule?.enabled ?? true,
    pattern: typeof config["pattern"] === "string" ? config["pattern"] : "",
    context: textOf(config["context"]),
    entities: textOf(config["entities"]),
    labels: textOf(config["labels"]),
    threshold: typeof config["threshold"] === "number" ? config["threshold"] : DEFAULT_THRESHOLD,
    reversible: config["reversible"] === true,
  };
}

/** Converts the fields to a request body. `config_json` contains only the fields of the selected detector. */
export function bodyOf(fields: RuleFields): NewDlpRule {
  const { detector_name, detector_type, entity_type, action_tier, confidence_threshold, enabled } = fields;
  return { detector_name, detector_type, entity_type, action_tier, confidence_threshold, enabled, config_json: configOf(fields) };
}

function configOf({ detector_type, pattern, context, entities, labels, threshold, reversible }: RuleFields) {
  if (detector_type === "regex") return { ...(pattern === "" ? {} : { pattern }), context: linesOf(context), reversible };
  if (detector_type === "ner") return { ...(linesOf(entities).length === 0 ? {} : { entities: linesOf(entities) }), reversible };
  return { labels: linesOf(labels), threshold };
}
