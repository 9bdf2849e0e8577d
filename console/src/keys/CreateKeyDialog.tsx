import { type RefObject, useState } from "react";
import { useForm } from "react-hook-form";
import { ApiError } from "../api/errors";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { CopyButton } from "../parts/Copy";
import { Dialog, DialogActions } from "../parts/Dialog";
import { SelectField, TextField } from "../parts/fields";
import { errorText } from "../parts/states";
import { texts } from "../texts";
import { type CreatedKey, useCreateKey } from "./api";
import styles from "./CreateKeyDialog.module.css";
import { programs } from "./programs";

/** Creates a key, and then shows it once. */
export function CreateKeyDialog({ open, onClose, returnTo }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}) {
  const [created, setCreated] = useState<CreatedKey | null>(null);
  const [shown, setShown] = useState(false);
  if (open && !shown) {
    setShown(true);
    setCreated(null);
  }
  const close = () => {
    setShown(false);
    onClose();
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      returnTo={returnTo}
      persistent={created !== null}
      title={created === null ? texts.keys.newTitle : texts.keys.createdTitle}
      text={created === null ? texts.keys.newText : texts.keys.createdText}
    >
      {created === null ? <NewKeyForm onCreated={setCreated} onCancel={close} /> : <Secret apiKey={created} onDone={close} />}
    </Dialog>
  );
}

interface Fields {
  description: string;
  expires_in_days: string;
}

function NewKeyForm({ onCreated, onCancel }: { onCreated: (key: CreatedKey) => void; onCancel: () => void }) {
  const form = useForm<Fields>({ defaultValues: { description: "", expires_in_days: "90" } });
  const create = useCreateKey();
  const { errors } = form.formState;

  const submit = form.handleSubmit(async ({ description, expires_in_days: days }) => {
    try {
      onCreated(await create.mutateAsync({ description, expires_in_days: days === "" ? null : Number(days) }));
    } catch (error) {
      const faults = error instanceof ApiError ? Object.entries(error.fields) : [];
      for (const [name, message] of faults) form.setError(name as keyof Fields, { message });
      if (faults.length === 0) form.setError("root", { message: errorText(error) });
    }
  });

  return (
    <form className={styles["form"]} onSubmit={(event) => void submit(event)} noValidate>
      {errors.root !== undefined && <p className={styles["fault"]} role="alert">{errors.root.message}</p>}
      <TextField
        label={texts.keys.name} hint={texts.keys.nameHint} fault={errors.description?.message} autoFocus maxLength={255}
        autoComplete="off" {...form.register("description", { required: texts.keys.nameRequired })}
      />
      <SelectField label={texts.keys.expiry} fault={errors.expires_in_days?.message} {...form.register("expires_in_days")}>
        {["7", "30", "90", "365", ""].map((days) => <option key={days} value={days}>{texts.keys.expiries[days]}</option>)}
      </SelectField>
      <DialogActions>
        <Button onClick={onCancel}>{texts.cancel}</Button>
        <Button look="primary" type="submit" busy={create.isPending}>{texts.keys.create}</Button>
      </DialogActions>
    </form>
  );
}

function Secret({ apiKey, onDone }: { apiKey: CreatedKey; onDone: () => void }) {
  return (
    <div className={styles["form"]}>
      <div className={styles["secret"]}>
        <code aria-label={texts.keys.yourKey} className={styles["key"]}>{apiKey.api_key}</code>
        <CopyButton text={apiKey.api_key} size="small" autoFocus />
      </div>
      <h3 className={styles["try"]}>{texts.keys.tryIt}</h3>
      <CodeTabs label={texts.keys.tryIt} programs={programs(apiKey.api_key, location.origin)} />
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </div>
  );
}
