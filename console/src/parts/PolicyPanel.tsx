import type { ReactNode } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { isOutdated } from "../api/errors";
import { useRights } from "../api/queries";
import type { FormVersion } from "../api/versions";
import { Button } from "./Button";
import { AFTER_SUBMIT, showFaults } from "./forms";
import { Panel } from "./Page";
import { ErrorState, Skeleton } from "./states";
import { toast } from "./toasts";
import { useUnsaved } from "./unsaved";
import { texts } from "../texts";
import styles from "./PolicyPanel.module.css";

/** A panel with the form of a policy. `onSave` receives the changed fields. If the API stores other values than the
 * entered ones, `onSave` returns the stored fields. Auditors see the panel without the save button. */
export function PolicyPanel<T extends FieldValues>({ title, form, query, onSave, saved, version, children, footer }: {
  title: string;
  form: UseFormReturn<T>;
  query: { data: unknown; error: unknown; refetch: () => unknown };
  onSave: (changed: Partial<T>) => Promise<T | void>;
  saved: string;
  /** The version of the policy. Set it if the API refuses `onSave` after a change by somebody else. The panel then
   * calls `accept`. */
  version?: FormVersion;
  children: ReactNode;
  footer?: ReactNode;
}) {
  const { administers } = useRights();
  const { errors, isDirty, isSubmitting, dirtyFields } = form.formState;
  useUnsaved(isDirty && !isSubmitting);
  const submit = form.handleSubmit(async (fields) => {
    try {
      const changed = Object.entries(fields).filter(([name]) => name in dirtyFields);
      const stored = await onSave(Object.fromEntries(changed) as Partial<T>);
      // Text that the user entered during the save stays in the form as unsaved.
      const typed = form.getValues();
      const later = Object.keys(form.formState.dirtyFields).filter((name) => JSON.stringify(typed[name]) !== JSON.stringify(fields[name]));
      form.reset(stored ?? fields, AFTER_SUBMIT);
      for (const name of later) form.setValue(name as Path<T>, typed[name], { shouldDirty: true });
      toast(saved);
    } catch (error) {
      showFaults(form, error);
      if (isOutdated(error)) version?.accept();
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
