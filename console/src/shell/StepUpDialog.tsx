import { useState } from "react";
import { useForm } from "react-hook-form";
import { api, dataOf } from "../api/client";
import { canUsePasskeys, signWithPasskey } from "../api/passkeys";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { TextField } from "../parts/fields";
import { errorText } from "../parts/states";
import { texts } from "../texts";
import { stepUpTexts } from "../texts/security";
import styles from "./StepUpDialog.module.css";

/** Asks for a second factor. */
export function StepUpDialog({ open, onEnd }: { open: boolean; onEnd: (verified: boolean) => void }) {
  return (
    <Dialog open={open} onClose={() => onEnd(false)} title={stepUpTexts.title} text={stepUpTexts.text}>
      <Factor onEnd={onEnd} />
    </Dialog>
  );
}

function Factor({ onEnd }: { onEnd: (verified: boolean) => void }) {
  const [method, setMethod] = useState<"totp" | "recovery">("totp");
  const form = useForm({ defaultValues: { code: "" } });
  const { errors, isSubmitting } = form.formState;
  const isApp = method === "totp";

  const verify = form.handleSubmit(async ({ code }) => {
    try {
      await dataOf(api.POST("/api/auth/mfa/verify", { body: { method, code: code.replaceAll(" ", "") } }));
      onEnd(true);
    } catch (error) {
      form.setError("code", { message: errorText(error) }, { shouldFocus: true });
    }
  });

  async function verifyPasskey() {
    try {
      const { public_key } = await dataOf(api.POST("/api/auth/mfa/webauthn/assert/begin", { body: {} }));
      const credential = await signWithPasskey(public_key);
      await dataOf(api.POST("/api/auth/mfa/webauthn/assert/finish", { body: { credential } }));
      onEnd(true);
    } catch (error) {
      form.setError("code", { message: errorText(error) });
    }
  }

  return (
    <form className={styles["form"]} onSubmit={(event) => void verify(event)} noValidate>
      <TextField
        label={isApp ? stepUpTexts.code : stepUpTexts.recoveryCode}
        autoComplete={isApp ? "one-time-code" : "off"}
        inputMode={isApp ? "numeric" : "text"}
        spellCheck={false}
        autoFocus
        fault={errors.code?.message}
        {...form.register("code", { required: stepUpTexts.codeRequired })}
      />
      <button type="button" className={styles["other"]} onClick={() => { setMethod(isApp ? "recovery" : "totp"); form.reset(); }}>
        {isApp ? stepUpTexts.recovery : stepUpTexts.app}
      </button>
      {canUsePasskeys() && (
        <button type="button" className={styles["other"]} onClick={() => void verifyPasskey()}>{stepUpTexts.passkey}</button>
      )}
      <DialogActions>
        <Button onClick={() => onEnd(false)}>{texts.cancel}</Button>
        <Button look="primary" type="submit" busy={isSubmitting}>{stepUpTexts.verify}</Button>
      </DialogActions>
    </form>
  );
}
