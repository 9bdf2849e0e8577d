import { type ReactNode, type RefObject, useState } from "react";
import { useKept } from "../api/versions";
import { texts } from "../texts";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import { errorText } from "./states";
import { toast } from "./toasts";
import { useResetOnOpen } from "./useResetOnOpen";

/** What the dialog says. It stays the same while the dialog is open, even if the page loads newer data. */
interface Wording {
  title: string;
  text: string;
  action: string;
  look?: "danger" | "primary";
  /** The message after the action has succeeded. */
  done: string;
}

interface Action<Row> {
  onClose: () => void;
  /** What the action changes. `run` gets it as it was when the dialog opened. */
  row?: Row;
  run: (row: Row) => Promise<unknown>;
}

/** Asks for confirmation before an action. `run` sends the request. */
export function ConfirmDialog<Row>({ open, title, text, action, look = "danger", done, returnTo, children, ...rest }: Wording & Action<Row> & {
  open: boolean;
  returnTo?: RefObject<HTMLElement | null>;
  children?: ReactNode;
}) {
  const [shown] = useResetOnOpen<Wording>(open, { title, text, action, look, done });
  return (
    <Dialog open={open} onClose={rest.onClose} title={shown.title} text={shown.text} {...(returnTo && { returnTo })}>
      {children}
      <Answers {...shown} {...rest} />
    </Dialog>
  );
}

function Answers<Row>({ onClose, action, look, row, run, done }: Wording & Action<Row>) {
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
      <Button {...(look && { look })} busy={busy} onClick={() => void confirm()}>{action}</Button>
    </DialogActions>
  );
}
