import { type ReactNode, useEffect, useRef } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { texts } from "../texts";
import { Button } from "./Button";
import { DialogActions } from "./Dialog";
import styles from "./DialogForm.module.css";
import { showFaults } from "./forms";
import { errorText } from "./states";
import { toast } from "./toasts";
import { useUnsaved } from "./unsaved";

/** The form in a dialog, with its buttons. The cancel button discards unsaved changes without a question. `onSubmit`
 * sends the request. If it fails, the form shows the errors at its fields, or the page shows the error if the dialog was
 * closed meanwhile. */
export function DialogForm<T extends FieldValues>({ form, action, look = "primary", onSubmit, onCancel, children }: {
  form: UseFormReturn<T>;
  action: string;
  look?: "primary" | "danger";
  onSubmit: (values: T) => Promise<unknown>;
  onCancel: () => void;
  children: ReactNode;
}) {
  const { errors, isSubmitting, isSubmitSuccessful, isDirty } = form.formState;
  const discard = useUnsaved(isDirty && !isSubmitting && !isSubmitSuccessful);
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const submit = form.handleSubmit(async (values) => {
    try {
      await onSubmit(values);
    } catch (error) {
      if (isShown.current) showFaults(form, error);
      else toast(errorText(error), "failed");
    }
  });
  return (
    <form
      className={styles["form"]} noValidate
      onSubmit={(event) => {
        // Clear errors of the API first. An error at a list, or at a field that is no longer rendered, would block the
        // submission.
        form.clearErrors();
        void submit(event);
      }}
    >
      {errors.root !== undefined && <p className={styles["fault"]} role="alert">{errors.root.message}</p>}
      {children}
      <DialogActions>
        <Button onClick={() => { discard(); onCancel(); }}>{texts.cancel}</Button>
        <Button look={look} type="submit" busy={isSubmitting}>{action}</Button>
      </DialogActions>
    </form>
  );
}
