import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { texts } from "../texts";

/** Asks whether unsaved changes may be lost. */
export function LeaveDialog({ open, onAnswer }: { open: boolean; onAnswer: (leave: boolean) => void }) {
  const { title, text, stay, leave } = texts.unsaved;
  return (
    <Dialog open={open} onClose={() => onAnswer(false)} title={title} text={text}>
      <DialogActions>
        <Button onClick={() => onAnswer(false)}>{stay}</Button>
        <Button look="danger" onClick={() => onAnswer(true)}>{leave}</Button>
      </DialogActions>
    </Dialog>
  );
}
