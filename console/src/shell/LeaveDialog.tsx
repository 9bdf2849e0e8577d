import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { texts } from "../texts";

/** Asks whether unsaved changes, or a secret that is shown once, may be lost. */
export function LeaveDialog({ open, isSecret, onAnswer }: { open: boolean; isSecret: boolean; onAnswer: (leave: boolean) => void }) {
  const { title, text, stay, leave } = isSecret ? texts.unsavedSecret : texts.unsaved;
  return (
    <Dialog open={open} onClose={() => onAnswer(false)} title={title} text={text}>
      <DialogActions>
        <Button onClick={() => onAnswer(false)}>{stay}</Button>
        <Button look="danger" onClick={() => onAnswer(true)}>{leave}</Button>
      </DialogActions>
    </Dialog>
  );
}
