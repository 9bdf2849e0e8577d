import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { alertTexts } from "../texts/alerts";
import { type AlertRule, type Comparison, COMPARISONS, type Metric, useSaveAlertRule } from "./api";
import { METRICS } from "./choices";

interface AlertFields {
  name: string;
  metric_type: Metric;
  comparison: Comparison;
  threshold: number;
  window_minutes: number;
  cooldown_minutes: number;
  webhook_url: string;
  enabled: boolean;
}

const DEFAULT_MINUTES = 60;
const MAX_MINUTES = 10_080;

/** Creates and edits an alert rule. */
export function AlertForm({ rule, onDone }: { rule?: AlertRule; onDone: () => void }) {
  const { rules } = texts;
  const alerts = alertTexts;
  const form = useForm<AlertFields>({
    defaultValues: {
      name: rule?.name ?? "",
      metric_type: rule?.metric_type ?? "cost",
      comparison: rule?.comparison ?? "gt",
      threshold: rule?.threshold ?? Number.NaN,
      window_minutes: rule?.window_minutes ?? DEFAULT_MINUTES,
      cooldown_minutes: rule?.cooldown_minutes ?? DEFAULT_MINUTES,
      webhook_url: rule?.webhook_url ?? "",
      enabled: rule?.enabled ?? true,
    },
  });
  const save = useSaveAlertRule(rule);
  const { errors } = form.formState;
  const minutes = { valueAsNumber: true, required: alerts.minutesRequired };
  return (
    <DialogForm
      form={form} action={rule === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async ({ webhook_url, ...fields }) => {
        await save.mutateAsync({ ...fields, webhook_url: webhook_url.trim() || null });
        toast(rule === undefined ? rules.created(fields.name) : rules.saved(fields.name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <SelectField label={alerts.metric} hint={alerts.metricHints[form.watch("metric_type")]} fault={errors.metric_type?.message} {...form.register("metric_type")}>
        {METRICS.map((metric) => <option key={metric} value={metric}>{alerts.metrics[metric]}</option>)}
      </SelectField>
      <Fields>
        <SelectField label={alerts.comparison} fault={errors.comparison?.message} {...form.register("comparison")}>
          {COMPARISONS.map((comparison) => <option key={comparison} value={comparison}>{alerts.comparisons[comparison]}</option>)}
        </SelectField>
        <TextField
          label={alerts.threshold} type="number" step="any" fault={errors.threshold?.message}
          {...form.register("threshold", { valueAsNumber: true, required: alerts.thresholdRequired })}
        />
      </Fields>
      <Fields>
        <TextField
          label={alerts.window} hint={alerts.windowHint} type="number" min={1} max={MAX_MINUTES} step={1} fault={errors.window_minutes?.message}
          {...form.register("window_minutes", minutes)}
        />
        <TextField
          label={alerts.cooldown} hint={alerts.cooldownHint} type="number" min={1} max={MAX_MINUTES} step={1}
          fault={errors.cooldown_minutes?.message} {...form.register("cooldown_minutes", minutes)}
        />
      </Fields>
      <TextField
        label={alerts.url} hint={alerts.urlHint} type="url" autoComplete="off" spellCheck={false} fault={errors.webhook_url?.message}
        {...form.register("webhook_url")}
      />
      <CheckboxField label={rules.enabled} hint={alerts.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
    </DialogForm>
  );
}
