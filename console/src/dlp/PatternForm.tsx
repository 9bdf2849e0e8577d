import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextAreaField, TextField } from "../parts/fields";
import { linesOf, textOf } from "../parts/lines";
import shared from "../parts/rules.module.css";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { dlpTexts, patternTexts, suppressionTexts } from "../texts/dlp";
import { TIERS } from "./api";
import { CATEGORIES, type CustomPattern, type NewCustomPattern, useSavePattern } from "./customization";
import { draftEntity, PatternTrial } from "./PatternTrial";

type PatternFields = Omit<Required<NewCustomPattern>, "context_words"> & { context_words: string };

/** Creates and edits a custom pattern. The user can test it before saving. */
export function PatternForm({ pattern, onDone }: { pattern?: CustomPattern; onDone: () => void }) {
  const { rules } = texts;
  const dlp = dlpTexts;
  const patterns = patternTexts;
  const suppressions = suppressionTexts;
  const form = useForm<PatternFields>({ defaultValues: fieldsOf(pattern) });
  const save = useSavePattern(pattern);
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={pattern === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { name } = await save.mutateAsync({ ...fields, context_words: linesOf(fields.context_words) });
        toast(pattern === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message} {...form.register("name", { required: rules.nameRequired })} />
      <Fields>
        <SelectField label={rules.action} fault={errors.action_tier?.message} {...form.register("action_tier")}>
          {TIERS.map((tier) => <option key={tier} value={tier}>{dlp.tiers[tier]}</option>)}
        </SelectField>
        <SelectField label={patterns.category} fault={errors.category?.message} {...form.register("category")}>
          {CATEGORIES.map((category) => <option key={category} value={category}>{suppressions.categories[category]}</option>)}
        </SelectField>
      </Fields>
      <Fields>
        <TextField
          label={dlp.entityType} hint={dlp.entityTypeHint} autoComplete="off" spellCheck={false} maxLength={63}
          fault={errors.entity_type?.message} {...form.register("entity_type", { required: dlp.entityTypeRequired })}
        />
        <TextField
          label={dlp.threshold} hint={dlp.thresholdHint} type="number" min={0} max={1} step="any"
          fault={errors.confidence_threshold?.message} {...form.register("confidence_threshold", { valueAsNumber: true })}
        />
      </Fields>
      <TextField
        label={patterns.pattern} hint={pattern?.stream_max_length == null ? patterns.patternHint : patterns.longest}
        autoComplete="off" spellCheck={false} autoCapitalize="none" maxLength={2000} className={shared["mono"]}
        fault={errors.pattern?.message} {...form.register("pattern", { required: patterns.patternRequired })}
      />
      <TextAreaField label={dlp.context} hint={dlp.contextHint} rows={2} fault={errors.context_words?.message} {...form.register("context_words")} />
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
      {form.watch("pattern") !== "" && (
        <PatternTrial
          action={patterns.try} livePattern={form.watch("pattern")}
          draftOf={() => {
            const { pattern: draft, entity_type, action_tier } = form.getValues();
            return { rule_type: "regex", pattern: draft, entity_type: draftEntity(entity_type), action_tier };
          }}
        />
      )}
    </DialogForm>
  );
}

function fieldsOf(pattern: CustomPattern | undefined): PatternFields {
  return {
    name: pattern?.name ?? "",
    entity_type: pattern?.entity_type ?? "",
    pattern: pattern?.pattern ?? "",
    action_tier: pattern?.action_tier ?? "redact",
    category: pattern?.category ?? "pii",
    confidence_threshold: pattern?.confidence_threshold ?? 0.5,
    context_words: textOf(pattern?.context_words),
    enabled: pattern?.enabled ?? true,
  };
}
