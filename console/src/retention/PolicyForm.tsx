import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { dateUtc } from "../parts/format";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { retentionTexts } from "../texts/retention";
import { firstDays, type Retention, useUpdateRetention } from "./api";
import styles from "./RetentionPage.module.css";

/** Edits the retention periods. Shows which records the entered periods remove from the lists and from the archive. */
export function PolicyForm({ policy, onDone }: { policy: Retention; onDone: () => void }) {
  const update = useUpdateRetention(policy);
  const form = useForm({
    defaultValues: {
      hot_retention_days: policy.hot_retention_days,
      warm_retention_days: policy.warm_retention_days,
      cold_retention_years: policy.cold_retention_years,
      archiver_schedule: policy.archiver_schedule,
    },
  });
  const { errors, dirtyFields } = form.formState;
  const { hot_retention_days: hot, warm_retention_days: warm, cold_retention_years: coldYears } = form.watch();
  const isValid = [hot, warm, coldYears].every((value) => Number.isInteger(value) && value >= 0 && value <= 3650);
  const currentCutoff = firstDays({ hot: policy.hot_retention_days, warm: policy.warm_retention_days, coldYears: policy.cold_retention_years });
  const newCutoff = isValid ? firstDays({ hot, warm, coldYears }) : currentCutoff;
  const isShorter = newCutoff.database > currentCutoff.database || newCutoff.archive > currentCutoff.archive;
  const numberRules = { valueAsNumber: true, required: retentionTexts.numberRequired, validate: (value: number) => Number.isInteger(value) || retentionTexts.numberRequired };
  return (
    <DialogForm
      form={form} action={isShorter ? retentionTexts.shorten : texts.rules.save} look={isShorter ? "danger" : "primary"} onCancel={onDone}
      onSubmit={async (fields) => {
        // Send only changed fields. Fields that are not sent keep their value and their `source`.
        await update.mutateAsync(Object.fromEntries(Object.entries(fields).filter(([name]) => name in dirtyFields)));
        toast(retentionTexts.saved);
        onDone();
      }}
    >
      <TextField label={retentionTexts.hotDays} hint={retentionTexts.hotHint} type="number" min={1} step={1} autoFocus source={policy.sources["hot_retention_days"]} fault={errors.hot_retention_days?.message} {...form.register("hot_retention_days", numberRules)} />
      <TextField label={retentionTexts.warmDays} hint={retentionTexts.warmHint} type="number" min={0} step={1} source={policy.sources["warm_retention_days"]} fault={errors.warm_retention_days?.message} {...form.register("warm_retention_days", numberRules)} />
      <TextField label={retentionTexts.coldYears} hint={retentionTexts.coldHint} type="number" min={0} step={1} source={policy.sources["cold_retention_years"]} fault={errors.cold_retention_years?.message} {...form.register("cold_retention_years", numberRules)} />
      <TextField
        label={retentionTexts.schedule} hint={retentionTexts.scheduleHint} autoComplete="off" spellCheck={false} source={policy.sources["archiver_schedule"]} fault={errors.archiver_schedule?.message}
        {...form.register("archiver_schedule", { required: retentionTexts.scheduleRequired })}
      />
      {isValid && (
        <div className={styles["effects"]} role="status">
          <p>{retentionTexts.leavesLists(dateUtc(newCutoff.database))}</p>
          <p>{retentionTexts.isRemoved(dateUtc(newCutoff.archive))}</p>
        </div>
      )}
    </DialogForm>
  );
}
