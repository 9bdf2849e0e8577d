import { Pencil } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { isOutdated } from "../api/errors";
import { type ConfigurationEntry, useConfiguration, useSetConfiguration } from "../api/configuration";
import { useRights } from "../api/queries";
import { useFormVersion } from "../api/versions";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { configurationTexts } from "../texts/organization";
import styles from "./OrganizationPage.module.css";

/** The entries of the system configuration, with the effective value and the source of each. */
export function Configuration() {
  const configuration = configurationTexts;
  const { error, data, refetch } = useConfiguration();
  return (
    <Panel title={configuration.title}>
      {error && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="40%" /></div>
      ) : (
        <ul className={styles["list"]} aria-label={configuration.title}>{data.map((entry) => <Entry key={entry.key} entry={entry} />)}</ul>
      )}
    </Panel>
  );
}

function Entry({ entry }: { entry: ConfigurationEntry }) {
  const configuration = configurationTexts;
  const { administers } = useRights();
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <code className={styles["name"]}>{entry.key}</code>
        <span className={styles["muted"]}>{entry.description}</span>
      </span>
      <span className={styles["actions"]}>
        <span className={styles["value"]}>
          <code>{entry.value === "" ? configuration.noValue : entry.value}</code>
          <span className={styles["source"]}>{entry.editable ? texts.sources[entry.source] : configuration.fixed[entry.source]}</span>
        </span>
        {administers && entry.editable && <EditButton entry={entry} />}
      </span>
    </li>
  );
}

function EditButton({ entry }: { entry: ConfigurationEntry }) {
  const configuration = configurationTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} size="small" aria-label={configuration.edit(entry.key)} onClick={() => setOpen(true)}><Pencil aria-hidden /></Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={entry.key} text={entry.description}>
        <EntryForm entry={entry} onDone={close} />
      </Dialog>
    </>
  );
}

function EntryForm({ entry, onDone }: { entry: ConfigurationEntry; onDone: () => void }) {
  const configuration = configurationTexts;
  const set = useSetConfiguration(entry.key);
  const form = useForm({ values: { value: entry.value }, resetOptions: KEEP_TYPED });
  const { errors, dirtyFields } = form.formState;
  const { version, accept } = useFormVersion(entry.etag, dirtyFields);
  const fault = errors.value?.message;
  const hint = configuration.defaultValue(entry.default);
  return (
    <DialogForm
      form={form} action={texts.rules.save} onCancel={onDone}
      onSubmit={async ({ value }) => {
        await set.mutateAsync({ value, version }).catch((error: unknown) => {
          if (isOutdated(error)) accept();
          throw error;
        });
        toast(configuration.saved(entry.key));
        onDone();
      }}
    >
      {entry.choices === null ? (
        <TextField label={configuration.value} hint={hint} source={entry.source} autoFocus autoComplete="off" spellCheck={false} fault={fault} {...form.register("value")} />
      ) : (
        <SelectField label={configuration.value} hint={hint} source={entry.source} autoFocus fault={fault} {...form.register("value")}>
          {entry.choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
        </SelectField>
      )}
    </DialogForm>
  );
}
