import type { ReactNode } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { texts } from "../texts";
import { Button } from "./Button";
import { DialogActions } from "./Dialog";
import styles from "./DialogForm.module.css";
import { showFaults, useUnsavedWarning } from "./forms";

/** The form in a dialog, with its buttons. `onSubmit` calls the API; its failures are shown at the fields. */
export function DialogForm<T extends FieldValues>({ form, action, look = "primary", onSubmit, onCancel, children }: {
  form: UseFormReturn<T>;
  action: string;
  look?: "primary" | "danger";
  onSubmit: (values: T) => Promise<unknown>;
  onCancel: () => void;
  children: ReactNode;
}) {
  const { errors, isSubmitting, isDirty } = form.formState;
  useUnsavedWarning(isDirty && !isSubmitting);
  const submit = form.handleSubmit(async (values) => {
    try {
      await onSubmit(values);
    } catch (error) {
      showFaults(form, error);
    }
  });
  return (
    <form
      className={styles["form"]} noValidate
      onSubmit={(event) => {
        // The message of the API at a list or at a field that is gone would stop the submission.
        form.clearErrors();
        void submit(event);
      }}
    >
      {errors.root !== undefined && <p className={styles["fault"]} role="alert">{errors.root.message}</p>}
      {children}
      <DialogActions>
        <Button onClick={onCancel}>{texts.cancel}</Button>
        <Button look={look} type="submit" busy={isSubmitting}>{action}</Button>
      </DialogActions>
    </form>
  );
}
