import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Badge } from "../parts/Badge";
import { TextAreaField } from "../parts/fields";
import { Marked } from "../parts/Marked";
import { TrialPanel, trialStyles } from "../parts/Trial";
import { dlpTexts, suppressionTexts } from "../texts/dlp";
import { type Evaluation, useEvaluate } from "./api";
import { TONES } from "./tones";

/** Evaluates a text with all active rules, and explains the decision. */
export function EvaluationPanel() {
  const dlp = dlpTexts;
  const [text, setText] = useState("");
  const [missing, setMissing] = useState(false);
  const evaluate = useEvaluate();

  function run() {
    setMissing(text === "");
    if (text !== "") evaluate.mutate(text);
  }

  return (
    <TrialPanel
      title={dlp.evaluateTitle} text={dlp.evaluateText} action={dlp.evaluate} busy={evaluate.isPending}
      data={evaluate.data} error={evaluate.error} onRun={run}
      result={evaluate.data !== undefined && <Explanation evaluation={evaluate.data} text={evaluate.variables ?? ""} />}
    >
      <TextAreaField
        label={dlp.text} rows={4} maxLength={100_000} value={text} fault={missing ? dlp.textRequired : undefined}
        onChange={({ target }) => setText(target.value)}
      />
    </TrialPanel>
  );
}

function Explanation({ evaluation, text }: { evaluation: Evaluation; text: string }) {
  const dlp = dlpTexts;
  const suppressions = suppressionTexts;
  const { final_action: action, matched_rules: matched } = evaluation;
  return (
    <>
      <div className={trialStyles["line"]}>
        <Badge tone={TONES[action]}>{dlp.actions[action]}</Badge>
        <span>{dlp.matchedRules(evaluation.rules_matched, evaluation.rules_evaluated)}</span>
      </div>
      {matched.length > 0 && (
        <>
          <Marked label={dlp.marked} text={text} spans={matched.flatMap((rule) => rule.matches)} />
          <ul className={trialStyles["list"]}>
            {matched.map((rule) => (
              <li key={rule.rule_id}>
                <Badge tone={TONES[rule.action_tier]}>{dlp.tiers[rule.action_tier]}</Badge>
                <span className={trialStyles["name"]}>{rule.rule_name}</span>
                <span className={trialStyles["muted"]}>
                  {[dlp.sources[rule.source], rule.entity_type, dlp.matches(rule.match_count)].join(" · ")}
                </span>
                {rule.source === "platform" && rule.detector_type === "regex" && (
                  <Link to="/dlp-rules/suppressions" search={{ pattern: rule.rule_id }} aria-label={suppressions.suppressThis(rule.rule_name)}>
                    {suppressions.suppress}
                  </Link>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
      <details>
        <summary>{dlp.trace}</summary>
        <ol className={trialStyles["steps"]}>{evaluation.decision_trace.map((step, at) => <li key={at}>{step}</li>)}</ol>
      </details>
    </>
  );
}
