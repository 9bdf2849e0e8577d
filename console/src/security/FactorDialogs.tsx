import { type RefObject, useEffect } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { Secret } from "../parts/Secret";
import { errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { securityTexts, stepUpTexts } from "../texts/security";
import { useAddPasskey, useBeginApp, useConfirmApp, useRecoveryCodes } from "./api";
import styles from "./SecurityPage.module.css";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}

/** Sets up an authenticator app. Shows the secret, asks for a code, and then shows the recovery codes if the user had
 * none. */
export function AppDialog({ open, onClose, returnTo }: DialogProps) {
  const security = securityTexts;
  const [codes, setCodes] = useResetOnOpen<string[] | null>(open, null);
  return (
    <Dialog
      open={open} onClose={onClose} returnTo={returnTo} persistent={codes !== null}
      title={codes === null ? security.setUpApp : security.saveCodes} text={codes === null ? security.setUpAppText : security.saveCodesText}
    >
      {codes === null ? <AppForm onEnrolled={(made) => (made === null ? onClose() : setCodes(made))} onCancel={onClose} /> : <CodeList codes={codes} onDone={onClose} />}
    </Dialog>
  );
}

function AppForm({ onEnrolled, onCancel }: { onEnrolled: (codes: string[] | null) => void; onCancel: () => void }) {
  const security = securityTexts;
  const { mutate, data } = useBeginApp();
  const confirm = useConfirmApp();
  const form = useForm({ defaultValues: { code: "" } });
  useEffect(() => mutate(undefined, { onError: (error) => toast(errorText(error), "failed") }), [mutate]);
  return (
    <DialogForm
      form={form} action={security.confirm} onCancel={onCancel}
      onSubmit={async ({ code }) => {
        const { recovery_codes } = await confirm.mutateAsync(code.replaceAll(" ", ""));
        toast(security.appAdded);
        onEnrolled(recovery_codes);
      }}
    >
      {data !== undefined && (
        <>
          <img className={styles["qr"]} src={data.qr_code} alt={security.qrCode} />
          <Secret label={security.appSecret} text={data.secret} />
          <p><a href={data.otpauth_url}>{security.openApp}</a></p>
        </>
      )}
      <TextField
        label={stepUpTexts.code} inputMode="numeric" autoComplete="one-time-code" fault={form.formState.errors.code?.message}
        {...form.register("code", { required: stepUpTexts.codeRequired })}
      />
    </DialogForm>
  );
}

/** Adds a passkey that is stored on this device or on a security key. Then shows the recovery codes if the user had
 * none. */
export function PasskeyDialog({ open, onClose, returnTo }: DialogProps) {
  const security = securityTexts;
  const [codes, setCodes] = useResetOnOpen<string[] | null>(open, null);
  return (
    <Dialog
      open={open} onClose={onClose} returnTo={returnTo} persistent={codes !== null}
      title={codes === null ? security.addPasskey : security.saveCodes} text={codes === null ? security.addPasskeyText : security.saveCodesText}
    >
      {codes === null ? <PasskeyForm onEnrolled={(made) => (made === null ? onClose() : setCodes(made))} onCancel={onClose} /> : <CodeList codes={codes} onDone={onClose} />}
    </Dialog>
  );
}

function PasskeyForm({ onEnrolled, onCancel }: { onEnrolled: (codes: string[] | null) => void; onCancel: () => void }) {
  const security = securityTexts;
  const form = useForm({ defaultValues: { name: "" } });
  const add = useAddPasskey();
  return (
    <DialogForm
      form={form} action={security.addPasskey} onCancel={onCancel}
      onSubmit={async ({ name }) => {
        const { recovery_codes } = await add.mutateAsync(name.trim());
        toast(security.passkeyAdded(name.trim()));
        onEnrolled(recovery_codes);
      }}
    >
      <TextField
        label={security.passkeyName} hint={security.passkeyNameHint} autoFocus maxLength={100} autoComplete="off"
        fault={form.formState.errors.name?.message} {...form.register("name", { required: security.required })}
      />
    </DialogForm>
  );
}

/** Creates new recovery codes. The previous codes are no longer valid. */
export function CodesDialog({ open, onClose, returnTo }: DialogProps) {
  const security = securityTexts;
  const [codes, setCodes] = useResetOnOpen<string[] | null>(open, null);
  const form = useForm();
  const make = useRecoveryCodes();
  return (
    <Dialog
      open={open} onClose={onClose} returnTo={returnTo} persistent={codes !== null}
      title={codes === null ? security.newCodesTitle : security.saveCodes} text={codes === null ? security.newCodesText : security.saveCodesText}
    >
      {codes === null ? (
        <DialogForm form={form} action={security.newCodes} onCancel={onClose} onSubmit={async () => setCodes((await make.mutateAsync(undefined)).recovery_codes)}>
          {null}
        </DialogForm>
      ) : (
        <CodeList codes={codes} onDone={onClose} />
      )}
    </Dialog>
  );
}

function CodeList({ codes, onDone }: { codes: string[]; onDone: () => void }) {
  return (
    <>
      <Secret label={securityTexts.codes} text={codes.join(" ")} />
      <p className={styles["note"]}>{securityTexts.codesNote}</p>
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </>
  );
}
