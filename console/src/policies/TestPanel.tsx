import { useState } from "react";
import { Badge, type Tone } from "../parts/Badge";
import { TrialPanel, trialStyles } from "../parts/Trial";
import { policyTexts } from "../texts/policies";
import { type PolicyTried, useTestPolicies } from "./api";
import { Variables } from "./PolicyTrials";
import { contextOf, type DescribedRequest, EMPTY_REQUEST, RequestFields } from "./RequestFields";
import { TONES } from "./tones";

const RESULT_TONES: Record<PolicyTried["rules"][number]["result"], Tone> = { matched: "warning", failed: "danger", unmatched: "neutral" };

/** Tests a request from entered values with the active policies. */
export function TestPanel() {
  const policies = policyTexts;
  const [request, setRequest] = useState<DescribedRequest>(EMPTY_REQUEST);
  const test = useTestPolicies();
  return (
    <TrialPanel
      title={policies.testTitle} text={policies.testText} action={policies.test} busy={test.isPending}
      data={test.data} error={test.error} onRun={() => test.mutate({ context: contextOf(request) })}
      result={test.data !== undefined && <Result result={test.data} />}
    >
      <RequestFields request={request} onChange={setRequest} />
    </TrialPanel>
  );
}

function Result({ result }: { result: PolicyTried }) {
  const policies = policyTexts;
  return (
    <>
      <div className={trialStyles["line"]}>
        {result.action !== null && <Badge tone={TONES[result.action]}>{policies.actions[result.action]}</Badge>}
        <span>{result.rule_name === null ? policies.noneMatched : policies.decidedBy(result.rule_name)}</span>
        {result.route_to !== null && <code>{result.route_to}</code>}
      </div>
      {result.rules.length > 0 && (
        <ul className={trialStyles["list"]} aria-label={policies.evaluated}>
          {result.rules.map((rule) => (
            <li key={rule.id}>
              <Badge tone={RESULT_TONES[rule.result]}>{policies.results[rule.result]}</Badge>
              <span className={trialStyles["name"]}>{rule.name}</span>
              <span className={trialStyles["muted"]}>{rule.reason ?? policies.actions[rule.action]}</span>
            </li>
          ))}
        </ul>
      )}
      <Variables context={result.context} />
    </>
  );
}
