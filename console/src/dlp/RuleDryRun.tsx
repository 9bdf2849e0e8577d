import { useQueryClient } from "@tanstack/react-query";
import type { UseFormReturn } from "react-hook-form";
import { Button } from "../parts/Button";
import { showFaults } from "../parts/forms";
import { TrialResult, trialStyles } from "../parts/Trial";
import { replayTexts } from "../texts/dlp";
import { fetchDlpRules } from "./api";
import { bodyOf, type RuleFields } from "./fields";
import { changedRules, DEFAULT_REPLAYED_REQUESTS, useReplay } from "./replay";
import { ReplayResult } from "./ReplayResult";

/** Tests the unsaved rule of the form on recorded requests, as if it were enabled. Shows errors at the fields of the
 * form. */
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
      <div><Button size="small" busy={replay.isPending} onClick={() => void run()}>{replayTexts.dryRun}</Button></div>
      <TrialResult data={replay.data} error={null}>
        {replay.data !== undefined && <ReplayResult result={replay.data} />}
      </TrialResult>
    </div>
  );
}
