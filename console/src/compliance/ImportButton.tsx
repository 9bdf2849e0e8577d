import { Upload } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { complianceTexts } from "../texts/compliance";
import { type ImportedBundle, type ImportSummary, useImportBundles } from "./api";
import styles from "./ImportButton.module.css";

interface ImportFields {
  file: FileList | null;
  mode: "skip" | "replace";
}

/** Imports bundles from a file, and then lists which of them were created, replaced, skipped or archived. */
export function ImportButton() {
  const compliance = complianceTexts;
  const [open, setOpen] = useState(false);
  const [summary, setSummary] = useResetOnOpen<ImportSummary | null>(open, null);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><Upload aria-hidden />{compliance.import}</Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} title={summary === null ? compliance.importTitle : compliance.importedTitle}
        {...(summary === null && { text: compliance.importText })}
      >
        {summary === null ? <ImportForm onDone={setSummary} onCancel={close} /> : <Imported summary={summary} onClose={close} />}
      </Dialog>
    </>
  );
}

function ImportForm({ onDone, onCancel }: { onDone: (summary: ImportSummary) => void; onCancel: () => void }) {
  const compliance = complianceTexts;
  const form = useForm<ImportFields>({ defaultValues: { file: null, mode: "skip" } });
  const importBundles = useImportBundles();
  const { errors } = form.formState;

  async function submit({ file: files, mode }: ImportFields) {
    // The browser cannot read a file that has changed since the user selected it.
    const text = await files?.[0]?.text().catch(() => undefined);
    const records = text === undefined ? null : recordsOf(text);
    if (records !== null) {
      onDone(await importBundles.mutateAsync({ records, mode }));
      return;
    }
    // Clear the field, so that the user can select the same file again.
    form.setValue("file", null);
    form.setError("file", { message: text === undefined ? compliance.unreadable : compliance.notAnExport });
  }

  return (
    <DialogForm form={form} action={compliance.importNow} onSubmit={submit} onCancel={onCancel}>
      <TextField
        label={compliance.file} type="file" accept="application/json,.json" className={styles["file"]} fault={errors.file?.message}
        {...form.register("file", { validate: (files) => (files?.length ?? 0) > 0 || compliance.fileRequired })}
      />
      <SelectField label={compliance.existing} hint={compliance.existingHints[form.watch("mode")]} {...form.register("mode")}>
        <option value="skip">{compliance.skip}</option>
        <option value="replace">{compliance.replace}</option>
      </SelectField>
    </DialogForm>
  );
}

/** Returns the records of an export, or null if the text is not an export. A file can also contain a single record. */
function recordsOf(text: string): ImportedBundle[] | null {
  try {
    const content: unknown = JSON.parse(text);
    if (Array.isArray(content)) return content as ImportedBundle[];
    return typeof content === "object" && content !== null ? [content as ImportedBundle] : null;
  } catch {
    return null;
  }
}

function Imported({ summary, onClose }: { summary: ImportSummary; onClose: () => void }) {
  const compliance = complianceTexts;
  return (
    <>
      <dl className={styles["names"]}>
        {(["created", "replaced", "skipped", "archived"] as const).map((kind) => {
          const names = summary[`${kind}_names`];
          return names.length > 0 && <div key={kind}><dt>{compliance.importKinds[kind]}</dt><dd>{names.join(", ")}</dd></div>;
        })}
      </dl>
      <DialogActions><Button look="primary" autoFocus onClick={onClose}>{texts.done}</Button></DialogActions>
    </>
  );
}
