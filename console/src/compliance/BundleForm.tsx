import { useForm } from "react-hook-form";
import { ChoicesField } from "../parts/ChoicesField";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextAreaField, TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { complianceTexts } from "../texts/compliance";
import { type Bundle, FRAMEWORKS, type Framework, useEntityTypes, useSaveBundle } from "./api";

interface BundleFields {
  name: string;
  description: string;
  regulatory_framework: Framework;
  version: string;
  seed_rule_mappings: string[];
  enabled: boolean;
}

/** Creates and edits a bundle. */
export function BundleForm({ bundle, onDone }: { bundle?: Bundle; onDone: () => void }) {
  const { rules } = texts;
  const compliance = complianceTexts;
  const form = useForm<BundleFields>({
    defaultValues: {
      name: bundle?.name ?? "",
      description: bundle?.description ?? "",
      regulatory_framework: bundle?.regulatory_framework ?? "GDPR",
      version: bundle?.version ?? "",
      seed_rule_mappings: bundle?.seed_rule_mappings ?? [],
      enabled: bundle?.enabled ?? true,
    },
  });
  const save = useSaveBundle(bundle);
  const types = useEntityTypes();
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={bundle === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async ({ description, ...fields }) => {
        const { name } = await save.mutateAsync({ ...fields, description: description.trim() || null });
        toast(bundle === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextAreaField label={rules.description} rows={2} maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <Fields>
        <SelectField label={compliance.framework} fault={errors.regulatory_framework?.message} {...form.register("regulatory_framework")}>
          {FRAMEWORKS.map((framework) => <option key={framework} value={framework}>{framework}</option>)}
        </SelectField>
        <TextField
          label={compliance.version} hint={compliance.versionHint} autoComplete="off" maxLength={50} fault={errors.version?.message}
          {...form.register("version", { required: compliance.versionRequired })}
        />
      </Fields>
      <ChoicesField
        label={compliance.types} hint={compliance.typesHint} fault={errors.seed_rule_mappings?.message}
        options={types.data?.map(({ entity_type: type }) => ({ id: type, name: type }))} chosen={form.watch("seed_rule_mappings")}
        onChange={(chosen) => form.setValue("seed_rule_mappings", chosen, { shouldDirty: true })}
      />
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
      {bundle !== undefined && bundle.acknowledged_at !== null && <p>{compliance.acknowledgeAgain}</p>}
    </DialogForm>
  );
}
