import { type ReactNode, type RefObject, useState } from "react";
import { texts } from "../texts";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import { errorText } from "./states";
import { toast } from "./toasts";

/** Asks for confirmation before an action. `run` sends the request. `done` is the message that is shown after it
 * succeeds. */
export function ConfirmDialog({ open, onClose, title, text, action, look = "danger", run, done, returnTo, children }: {
  open: boolean;
  onClose: () => void;
  title: string;
  text: string;
  action: string;
  look?: "danger" | "primary";
  run: () => Promise<unknown>;
  done: string;
  returnTo?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  async function confirm() {
    setBusy(true);
    try {
      await run();
      onClose();
      toast(done);
    } catch (error) {
      toast(errorText(error), "failed");
    } finally {
      setBusy(false);
    }
  }
  return (
    <Dialog open={open} onClose={onClose} title={title} text={text} {...(returnTo && { returnTo })}>
      {children}
      <DialogActions>
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button look={look} busy={busy} onClick={() => void confirm()}>{action}</Button>
      </DialogActions>
    </Dialog>
  );
}
