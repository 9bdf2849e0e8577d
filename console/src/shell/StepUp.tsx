import { lazy, Suspense, useEffect, useState } from "react";
import { setStepUpDialog } from "../api/step-up";

// The dialog is loaded when it is first used, because the first page needs no dialog.
const StepUpDialog = lazy(async () => ({ default: (await import("./StepUpDialog")).StepUpDialog }));

/** Asks for a second factor if a request needs one. After the verification, the request is sent again. If the user
 * closes the dialog, the request fails. */
export function StepUp() {
  const [answer, setAnswer] = useState<{ end: (verified: boolean) => void } | null>(null);
  const [used, setUsed] = useState(false);
  useEffect(() => setStepUpDialog((end) => {
    setAnswer({ end });
    setUsed(true);
  }), []);
  const end = (verified: boolean) => {
    answer?.end(verified);
    setAnswer(null);
  };
  return used && <Suspense><StepUpDialog open={answer !== null} onEnd={end} /></Suspense>;
}
