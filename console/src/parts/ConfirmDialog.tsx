import { type ReactNode, type RefObject, useState } from "react";
import { useKept } from "../api/versions";
import { texts } from "../texts";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import { errorText } from "./states";
import { toast } from "./toasts";

interface Question<Row> {
  onClose: () => void;
  action: string;
  look?: "danger" | "primary";
  /** The object of the action, if the request sends its version. `run` gets it as it was when the dialog opened. */
  row?: Row;
  run: (row: Row) => Promise<unknown>;
  done: string;
}

/** Asks for confirmation before an action. `run` sends the request. `done` is the message that is shown after it
 * succeeds. */
export function ConfirmDialog<Row>({ open, title, text, returnTo, children, ...question }: Question<Row> & {
  open: boolean;
  title: string;
  text: string;
  returnTo?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}) {
  return (
    <Dialog open={open} onClose={question.onClose} title={title} text={text} {...(returnTo && { returnTo })}>
      {children}
      <Answers {...question} />
    </Dialog>
  );
}

function Answers<Row>({ onClose, action, look = "danger", row, run, done }: Question<Row>) {
  const [busy, setBusy] = useState(false);
  const { change } = useKept(row as Row);
  async function confirm() {
    setBusy(true);
    try {
      await change(run);
      onClose();
      toast(done);
    } catch (error) {
      toast(errorText(error), "failed");
    } finally {
      setBusy(false);
    }
  }
  return (
    <DialogActions>
      <Button onClick={onClose}>{texts.cancel}</Button>
      <Button look={look} busy={busy} onClick={() => void confirm()}>{action}</Button>
    </DialogActions>
  );
}
