import { lazy, Suspense, useEffect, useState } from "react";
import { setStepUpDialog } from "../api/step-up";

// Loaded at first use: the first page does without dialogs.
const StepUpDialog = lazy(async () => ({ default: (await import("./StepUpDialog")).StepUpDialog }));

/** Asks for the second factor that a call needs. The call goes on when it is verified, or fails when this is closed. */
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
