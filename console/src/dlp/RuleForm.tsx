import { useForm, type UseFormReturn } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextAreaField, TextField } from "../parts/fields";
import { linesOf } from "../parts/lines";
import shared from "../parts/rules.module.css";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { dlpTexts } from "../texts/dlp";
import { type DlpRule, TIERS, useSaveRule } from "./api";
import { DETECTORS } from "./detectors";
import { bodyOf, fieldsOf, type RuleFields } from "./fields";
import { draftEntity, PatternTrial } from "./PatternTrial";
import { RuleDryRun } from "./RuleDryRun";

/** The entity types that every model of the entities tier recognises. A test of a rule without entity types uses
 * these. */
const ALL_ENTITIES = ["person", "organization", "location", "address", "date_of_birth"];

/** Creates and edits a rule. The user can test it before saving. */
export function RuleForm({ rule, onDone }: { rule?: DlpRule; onDone: () => void }) {
  const { rules } = texts;
  const dlp = dlpTexts;
  const form = useForm<RuleFields>({ defaultValues: fieldsOf(rule) });
  const save = useSaveRule(rule);
  const { errors } = form.formState;
  const detector = form.watch("detector_type");
  return (
    <DialogForm
      form={form} action={rule === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { detector_name: name } = await save.mutateAsync(bodyOf(fields));
        toast(rule === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.detector_name?.message}
        {...form.register("detector_name", { required: rules.nameRequired })}
      />
      <Fields>
        <SelectField label={dlp.detector} hint={dlp.detectorHints[detector]} fault={errors.detector_type?.message} {...form.register("detector_type")}>
          {DETECTORS.map((option) => <option key={option} value={option}>{dlp.detectors[option]}</option>)}
        </SelectField>
        <SelectField label={rules.action} fault={errors.action_tier?.message} {...form.register("action_tier")}>
          {TIERS.map((tier) => <option key={tier} value={tier}>{dlp.tiers[tier]}</option>)}
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
      <DetectorFields form={form} />
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
      <Trial form={form} />
      <RuleDryRun form={form} id={rule?.id} />
    </DialogForm>
  );
}

/** Tests the rule on a text. A regex rule without a pattern applies to built-in patterns. The test of all rules covers
 * these, so there is no test here. */
function Trial({ form }: { form: UseFormReturn<RuleFields> }) {
  const [detector, pattern] = form.watch(["detector_type", "pattern"]);
  if (detector === "llm" || (detector === "regex" && pattern === "")) return null;
  return (
    <PatternTrial
      action={dlpTexts.tryPattern} livePattern={detector === "regex" ? pattern : undefined}
      draftOf={() => {
        const { entities, entity_type, action_tier } = form.getValues();
        const names = linesOf(entities);
        return {
          rule_type: detector,
          pattern: detector === "ner" ? (names.length === 0 ? ALL_ENTITIES : names).join(", ") : pattern,
          entity_type: draftEntity(entity_type),
          action_tier,
        };
      }}
    />
  );
}

/** The fields that are specific to the selected detector. */
function DetectorFields({ form }: { form: UseFormReturn<RuleFields> }) {
  const dlp = dlpTexts;
  const { errors } = form.formState;
  const detector = form.watch("detector_type");
  if (detector === "llm") {
    return (
      <>
        <TextAreaField label={dlp.labels} hint={dlp.labelsHint} rows={3} fault={errors.labels?.message} {...form.register("labels")} />
        <TextField
          label={dlp.labelThreshold} hint={dlp.labelThresholdHint} type="number" min={0} max={1} step="any"
          fault={errors.threshold?.message} {...form.register("threshold", { valueAsNumber: true })}
        />
      </>
    );
  }
  return (
    <>
      {detector === "regex" ? (
        <>
          <TextField
            label={dlp.pattern} hint={dlp.patternHint} autoComplete="off" spellCheck={false} autoCapitalize="none" maxLength={2000}
            className={shared["mono"]} fault={errors.pattern?.message} {...form.register("pattern")}
          />
          <TextAreaField label={dlp.context} hint={dlp.contextHint} rows={2} fault={errors.context?.message} {...form.register("context")} />
        </>
      ) : (
        <TextAreaField label={dlp.entities} hint={dlp.entitiesHint} rows={3} fault={errors.entities?.message} {...form.register("entities")} />
      )}
      <CheckboxField label={dlp.reversible} hint={dlp.reversibleHint} fault={errors.reversible?.message} {...form.register("reversible")} />
    </>
  );
}
