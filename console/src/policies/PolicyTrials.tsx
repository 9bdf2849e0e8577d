import { type KeyboardEvent, useState } from "react";
import type { UseFormReturn } from "react-hook-form";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { showFaults } from "../parts/forms";
import { wholeNumber } from "../parts/format";
import { TrialResult, trialStyles } from "../parts/Trial";
import { policyTexts } from "../texts/policies";
import { type PolicyTried, type Replayed, useDryRun, useTestPolicies } from "./api";
import { bodyOf, type PolicyFields } from "./fields";
import { contextOf, type DescribedRequest, EMPTY_REQUEST, RequestFields } from "./RequestFields";

/** Tests the unsaved policy of the form: its condition on a request from entered values, and the whole policy on
 * recorded requests. Shows errors at the fields of the form. */
export function PolicyTrials({ form, id }: { form: UseFormReturn<PolicyFields>; id: string | undefined }) {
  const policies = policyTexts;
  const [request, setRequest] = useState<DescribedRequest>(EMPTY_REQUEST);
  const test = useTestPolicies();
  const dryRun = useDryRun(id);
  const onError = (error: unknown) => showFaults(form, error);

  function check() {
    form.clearErrors();
    dryRun.reset();
    test.mutate({ condition: form.getValues("condition"), context: contextOf(request) }, { onError });
  }

  // Enter in a field of the test must not submit the surrounding form. It runs the test instead.
  function checkOnEnter(event: KeyboardEvent) {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    if (form.getValues("condition") !== "") check();
  }

  async function run() {
    test.reset();
    if (await form.trigger(["name", "condition"])) dryRun.mutate(bodyOf(form.getValues()), { onError });
  }

  return (
    <section className={trialStyles["box"]} aria-label={policies.conditionTestTitle} onKeyDown={checkOnEnter}>
      <h3 className={trialStyles["boxTitle"]}>{policies.conditionTestTitle}</h3>
      <RequestFields request={request} onChange={setRequest} />
      <div className={trialStyles["line"]}>
        <Button size="small" busy={test.isPending} disabled={form.watch("condition") === ""} onClick={check}>{policies.check}</Button>
        <Button size="small" busy={dryRun.isPending} onClick={() => void run()}>{policies.dryRun}</Button>
      </div>
      <TrialResult data={test.data ?? dryRun.data} error={null}>
        {test.data !== undefined && <Checked result={test.data} />}
        {dryRun.data !== undefined && <DryRun result={dryRun.data} />}
      </TrialResult>
    </section>
  );
}

function Checked({ result }: { result: PolicyTried }) {
  const policies = policyTexts;
  return (
    <>
      <div className={trialStyles["line"]}>
        {result.error !== null ? (
          <><Badge tone="danger">{policies.error}</Badge><span>{result.error}</span></>
        ) : (
          <Badge tone={result.matched ? "warning" : "neutral"}>{result.matched ? policies.matches : policies.doesNotMatch}</Badge>
        )}
      </div>
      <Variables context={result.context} />
    </>
  );
}

function DryRun({ result: { samples, differences } }: { result: Replayed }) {
  const policies = policyTexts;
  if (samples === 0) return <p className={trialStyles["muted"]}>{policies.dryRunNone}</p>;
  return (
    <div className={trialStyles["line"]}>
      <span>{policies.dryRunResult(samples)}</span>
      {(["stricter", "weaker", "same"] as const).map((name) => (
        <span key={name}><strong>{wholeNumber(differences[name])}</strong> {policies[name]}</span>
      ))}
    </div>
  );
}

export function Variables({ context }: { context: PolicyTried["context"] }) {
  return (
    <details>
      <summary>{policyTexts.variables}</summary>
      <pre className={trialStyles["code"]} tabIndex={0}>{JSON.stringify(context, null, 2)}</pre>
    </details>
  );
}
