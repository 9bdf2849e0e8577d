import { useBlocker } from "@tanstack/react-router";
import { type ComponentType, useEffect, useState } from "react";
import { answerClosing, hasUnsaved, losesUnsaved, useHasSecret, useHasUnsaved, useIsClosing } from "../parts/unsaved";
import { texts } from "../texts";

interface Location {
  pathname: string;
}

const WHEN_UNSAVED = {
  shouldBlockFn: ({ current, next }: { current: Location; next: Location }) => losesUnsaved(current.pathname, next.pathname),
  enableBeforeUnload: hasUnsaved,
  withResolver: true,
} as const;

/** Asks for confirmation before unsaved changes, or a secret that is shown once, are lost by a link, by Back, or with a
 * dialog. */
export function LeaveQuestion() {
  const unsaved = useHasUnsaved();
  const isSecret = useHasSecret();
  const isClosing = useIsClosing();
  const blocker = useBlocker({ ...WHEN_UNSAVED, disabled: !unsaved });
  const isBlocked = blocker.status === "blocked";
  const open = isClosing || isBlocked;
  const Dialog = useLeaveDialog(unsaved);
  const answer = (leave: boolean) => {
    // Back can be pressed while the question about a dialog is open. One answer ends both.
    answerClosing(leave && !isBlocked);
    if (!isBlocked) return;
    if (leave) blocker.proceed();
    else blocker.reset();
  };
  useEffect(() => {
    const { title, text } = isSecret ? texts.unsavedSecret : texts.unsaved;
    if (open && Dialog === null) answer(confirm(`${title} ${text}`));
  });
  return Dialog && <Dialog open={open} isSecret={isSecret} onAnswer={answer} />;
}

/** Returns the dialog. It is loaded when a form has unsaved changes for the first time, because the first page needs no
 * dialog. Returns null if it could not be loaded. */
function useLeaveDialog(needed: boolean) {
  const [Dialog, setDialog] = useState<ComponentType<{ open: boolean; isSecret: boolean; onAnswer: (leave: boolean) => void }> | null>();
  useEffect(() => {
    if (!needed || Dialog) return;
    void import("./LeaveDialog").then(({ LeaveDialog }) => setDialog(() => LeaveDialog), () => setDialog(null));
  }, [needed, Dialog]);
  return Dialog;
}
