import type { ReactNode } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { showFaults, useUnsavedWarning } from "../parts/forms";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import styles from "./SignInPage.module.css";

/** A panel with the form of a policy. `onSave` gets the fields that were changed. Auditors see it without the button. */
export function PolicyPanel<T extends FieldValues>({ title, form, query, onSave, children, footer }: {
  title: string;
  form: UseFormReturn<T>;
  query: { data: unknown; error: unknown; refetch: () => unknown };
  onSave: (changed: Partial<T>) => Promise<unknown>;
  children: ReactNode;
  footer?: ReactNode;
}) {
  const { signIn } = texts;
  const { administers } = useRights();
  const { errors, isDirty, isSubmitting, dirtyFields } = form.formState;
  useUnsavedWarning(isDirty && !isSubmitting);
  const submit = form.handleSubmit(async (fields) => {
    try {
      const changed = Object.entries(fields).filter(([name]) => name in dirtyFields);
      await onSave(Object.fromEntries(changed) as Partial<T>);
      form.reset(fields);
      toast(signIn.saved);
    } catch (error) {
      showFaults(form, error);
    }
  });
  return (
    <Panel title={title}>
      {query.error && query.data === undefined ? (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      ) : query.data === undefined ? (
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : (
        <form className={styles["form"]} onSubmit={(event) => void submit(event)} noValidate>
          {errors.root !== undefined && <p className={styles["refusal"]} role="alert">{errors.root.message}</p>}
          <fieldset className={styles["group"]} disabled={!administers} aria-label={title}>{children}</fieldset>
          {administers && <div><Button look="primary" type="submit" busy={isSubmitting} disabled={!isDirty}>{texts.rules.save}</Button></div>}
          {footer}
        </form>
      )}
    </Panel>
  );
}
