import { useState } from "react";
import type { Schemas } from "../api/client";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { TextAreaField } from "../parts/fields";
import { Marked } from "../parts/Marked";
import { TrialResult, trialStyles } from "../parts/Trial";
import { dlpTexts } from "../texts/dlp";
import { useTestPattern } from "./api";

const DRAFT_ENTITY = "custom";

/** Tests the unsaved pattern or rule of a form on a text. `draftOf` returns the values of the form. */
export function PatternTrial({ action, draftOf }: { action: string; draftOf: () => Omit<Schemas["NewTest"], "sample_text"> }) {
  const dlp = dlpTexts;
  const [sample, setSample] = useState("");
  const trial = useTestPattern();
  const { data, variables } = trial;
  return (
    <div className={trialStyles["box"]}>
      <TextAreaField label={dlp.sample} hint={dlp.sampleHint} rows={3} value={sample} onChange={({ target }) => setSample(target.value)} />
      <div>
        <Button size="small" busy={trial.isPending} disabled={sample === ""} onClick={() => trial.mutate({ ...draftOf(), sample_text: sample })}>{action}</Button>
      </div>
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

/** Returns the entered entity type, or a placeholder for the test if the entered one is not valid. */
export function draftEntity(typed: string): string {
  return /^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(typed) ? typed : DRAFT_ENTITY;
}
