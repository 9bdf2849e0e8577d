import { useEffect, useRef, useState } from "react";
import type { Schemas } from "../api/client";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { TextAreaField } from "../parts/fields";
import { Marked } from "../parts/Marked";
import { TrialResult, trialStyles } from "../parts/Trial";
import { dlpTexts } from "../texts/dlp";
import { useTestPattern } from "./api";

const DRAFT_ENTITY = "custom";
const TYPING_MS = 400;

type Tested = Awaited<ReturnType<ReturnType<typeof useTestPattern>["mutateAsync"]>>;

/** Tests the unsaved pattern or rule of a form on a text. `draftOf` returns the values of the form. If `livePattern` is
 * set, the test also runs while the user types in the text or in this pattern. */
export function PatternTrial({ action, livePattern, draftOf }: {
  action: string;
  livePattern?: string | undefined;
  draftOf: () => Omit<Schemas["NewTest"], "sample_text">;
}) {
  const dlp = dlpTexts;
  const [sample, setSample] = useState("");
  // The last result stays while the next test runs.
  const [result, setResult] = useState<{ data: Tested; sample: string }>();
  const [isRequested, setRequested] = useState(false);
  const trial = useTestPattern();
  const run = (requested: boolean) => {
    setRequested(requested);
    trial.mutate({ ...draftOf(), sample_text: sample }, { onSuccess: (data) => setResult({ data, sample }) });
  };
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    if (sample === "" || livePattern === undefined) return undefined;
    const timer = setTimeout(() => latest.current(false), TYPING_MS);
    return () => clearTimeout(timer);
  }, [sample, livePattern]);
  const data = sample === "" ? undefined : result?.data;
  return (
    <div className={trialStyles["box"]}>
      <TextAreaField label={dlp.sample} hint={dlp.sampleHint} rows={3} value={sample} onChange={({ target }) => setSample(target.value)} />
      <div>
        <Button size="small" busy={trial.isPending && isRequested} disabled={sample === ""} onClick={() => run(true)}>{action}</Button>
      </div>
      {/* A result of a test that the button started is scrolled into view. */}
      <TrialResult data={isRequested ? data : null} error={trial.error}>
        {data !== undefined && data.error !== null && <p className={trialStyles["fault"]}>{data.error}</p>}
        {data !== undefined && data.error === null && (
          <>
            <div className={trialStyles["line"]}>
              <Badge tone={data.match_count > 0 ? "warning" : "neutral"}>
                {data.match_count > 0 ? dlp.matches(data.match_count) : dlp.noMatches}
              </Badge>
            </div>
            {data.match_count > 0 && <Marked label={dlp.marked} text={result?.sample ?? ""} spans={data.matches} />}
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
