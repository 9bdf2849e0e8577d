import { useState } from "react";
import type { UseFormReturn } from "react-hook-form";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { TextAreaField } from "../parts/fields";
import { linesOf } from "../parts/lines";
import { Marked } from "../parts/Marked";
import { TrialResult, trialStyles } from "../parts/Trial";
import { texts } from "../texts";
import { useTestPattern } from "./api";
import type { RuleFields } from "./fields";

/** The recognisers of an installation without a model of its own. A trial without names has these. */
const ALL_ENTITIES = ["person", "organization", "location", "address", "date_of_birth"];
const DRAFT_ENTITY = "custom";

/** Tries what the form holds on a text, before it is stored. */
export function PatternTrial({ form }: { form: UseFormReturn<RuleFields> }) {
  const { dlp } = texts;
  const [sample, setSample] = useState("");
  const trial = useTestPattern();
  const { data, variables } = trial;
  const [detector, pattern] = form.watch(["detector_type", "pattern"]);
  // Without a pattern the rule stands for built-in ones, which the test of all rules covers.
  if (detector === "regex" && pattern === "") return null;

  function run() {
    const { entities, entity_type: type, action_tier } = form.getValues();
    const names = linesOf(entities);
    trial.mutate({
      rule_type: detector === "ner" ? "ner" : "regex",
      pattern: detector === "ner" ? (names.length === 0 ? ALL_ENTITIES : names).join(", ") : pattern,
      sample_text: sample,
      entity_type: /^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(type) ? type : DRAFT_ENTITY,
      action_tier,
    });
  }

  return (
    <div className={trialStyles["box"]}>
      <TextAreaField label={dlp.sample} hint={dlp.sampleHint} rows={3} value={sample} onChange={({ target }) => setSample(target.value)} />
      <div><Button size="small" busy={trial.isPending} disabled={sample === ""} onClick={run}>{dlp.tryPattern}</Button></div>
      <TrialResult data={data} error={trial.error}>
        {data !== undefined && data.error !== null && <p className={trialStyles["fault"]}>{data.error}</p>}
        {data !== undefined && data.error === null && (
          <>
            <div className={trialStyles["line"]}>
              <Badge tone={data.match_count > 0 ? "warning" : "neutral"}>
                {data.match_count > 0 ? dlp.matches(data.match_count) : dlp.noMatches}
              </Badge>
            </div>
            {data.match_count > 0 && <Marked label={dlp.marked} text={variables?.sample_text ?? ""} spans={data.matches} />}
          </>
        )}
      </TrialResult>
    </div>
  );
}
