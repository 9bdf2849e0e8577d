import { Pencil, Plus } from "lucide-react";
import { useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { siemTexts } from "../texts/siem";
import type { Siem } from "./api";
import { ReceiverForm } from "./ReceiverForm";

/** Sets up or edits the receiver. If a secret was generated, shows it once after saving. */
export function EditButton({ siem: shown }: { siem: Siem }) {
  const siem = siemTexts;
  const isNew = shown.type === null;
  const [open, setOpen] = useState(false);
  // The page loads the receiver again while the dialog is open. The dialog must not turn into another one.
  const [wasNew] = useResetOnOpen(open, isNew);
  const [secret, setSecret] = useResetOnOpen<string | null>(open, null);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} look={isNew ? "primary" : "plain"} onClick={() => setOpen(true)}>
        {isNew ? <Plus aria-hidden /> : <Pencil aria-hidden />}{isNew ? siem.setUp : siem.edit}
      </Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} persistent={secret !== null}
        title={secret !== null ? siem.secretTitle : wasNew ? siem.setUpTitle : siem.editTitle} text={secret !== null ? siem.secretText : wasNew ? siem.setUpText : siem.editText}
      >
        {secret === null ? (
          <ReceiverForm
            siem={shown} onCancel={close}
            onSaved={(generated) => {
              toast(siem.saved);
              if (generated === null) close();
              else setSecret(generated);
            }}
          />
        ) : (
          <>
            <Secret label={siem.secret} text={secret} />
            <DialogActions><Button look="primary" onClick={close}>{texts.done}</Button></DialogActions>
          </>
        )}
      </Dialog>
    </>
  );
}
