import type { RefObject } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { Secret } from "../parts/Secret";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { type CreatedKey, useCreateKey } from "./api";
import styles from "./CreateKeyDialog.module.css";
import { programs } from "./programs";

/** Creates a key, of one's own or of a service account, and then shows it once. */
export function CreateKeyDialog({ open, onClose, returnTo, serviceAccount }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
  serviceAccount?: { id: string; name: string };
}) {
  const [created, setCreated] = useResetOnOpen<CreatedKey | null>(open, null);
  return (
    <Dialog
      open={open}
      onClose={onClose}
      returnTo={returnTo}
      persistent={created !== null}
      title={created === null ? texts.keys.newTitle : texts.keys.createdTitle}
      text={created !== null ? texts.keys.createdText : serviceAccount === undefined ? texts.keys.newText : texts.keys.newServiceText(serviceAccount.name)}
    >
      {created === null ? <NewKeyForm owner={serviceAccount?.id} onCreated={setCreated} onCancel={onClose} /> : <CreatedSecret apiKey={created} onDone={onClose} />}
    </Dialog>
  );
}

interface Fields {
  description: string;
  expires_in_days: string;
}

function NewKeyForm({ owner, onCreated, onCancel }: { owner: string | undefined; onCreated: (key: CreatedKey) => void; onCancel: () => void }) {
  const form = useForm<Fields>({ defaultValues: { description: "", expires_in_days: "90" } });
  const create = useCreateKey(owner);
  const { errors } = form.formState;

  return (
    <DialogForm
      form={form} action={texts.keys.create} onCancel={onCancel}
      onSubmit={async ({ description, expires_in_days: days }) =>
        onCreated(await create.mutateAsync({ description, expires_in_days: days === "" ? null : Number(days) }))}
    >
      <TextField
        label={texts.keys.name} hint={texts.keys.nameHint} fault={errors.description?.message} autoFocus maxLength={255}
        autoComplete="off" {...form.register("description", { required: texts.keys.nameRequired })}
      />
      <SelectField label={texts.keys.expiry} fault={errors.expires_in_days?.message} {...form.register("expires_in_days")}>
        {["7", "30", "90", "365", ""].map((days) => <option key={days} value={days}>{texts.keys.expiries[days]}</option>)}
      </SelectField>
    </DialogForm>
  );
}

function CreatedSecret({ apiKey, onDone }: { apiKey: CreatedKey; onDone: () => void }) {
  return (
    <div className={styles["created"]}>
      <Secret label={texts.keys.yourKey} text={apiKey.api_key} />
      <h3 className={styles["try"]}>{texts.keys.tryIt}</h3>
      <CodeTabs label={texts.keys.tryIt} programs={programs(apiKey.api_key, location.origin)} />
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </div>
  );
}
