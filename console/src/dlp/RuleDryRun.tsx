import { useQueryClient } from "@tanstack/react-query";
import type { UseFormReturn } from "react-hook-form";
import { Button } from "../parts/Button";
import { showFaults } from "../parts/forms";
import { TrialResult, trialStyles } from "../parts/Trial";
import { texts } from "../texts";
import { fetchDlpRules } from "./api";
import { bodyOf, type RuleFields } from "./fields";
import { changedRules, DEFAULT_REPLAYED_REQUESTS, useReplay } from "./replay";
import { ReplayResult } from "./ReplayResult";

/** Tries the rule in the form on recorded requests, enabled or not, before it is stored. Faults are shown at its fields. */
export function RuleDryRun({ form, id }: { form: UseFormReturn<RuleFields>; id: string | undefined }) {
  const client = useQueryClient();
  const { replay } = useReplay();

  async function run() {
    if (!(await form.trigger())) return;
    const changed = { ...bodyOf(form.getValues()), enabled: true };
    const recorded = { last: DEFAULT_REPLAYED_REQUESTS, days: null };
    try {
      const draft = { rules: changedRules(await fetchDlpRules(client), id, changed) };
      await replay.mutateAsync({ draft, recorded });
    } catch (error) {
      showFaults(form, error);
    }
  }

  return (
    <div className={trialStyles["box"]}>
      <div><Button size="small" busy={replay.isPending} onClick={() => void run()}>{texts.replay.dryRun}</Button></div>
      <TrialResult data={replay.data} error={null}>
        {replay.data !== undefined && <ReplayResult result={replay.data} />}
      </TrialResult>
    </div>
  );
}
