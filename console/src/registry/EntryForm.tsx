import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextAreaField, TextField } from "../parts/fields";
import { linesOf, textOf } from "../parts/lines";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { useModelNames } from "../routing/api";
import { texts } from "../texts";
import { registryTexts } from "../texts/registry";
import { linesOfTags, type RegisteredModel, type RiskTier, tagsOfLines, TIERS, useRegisterModel, useUpdateEntry } from "./api";

interface EntryFields {
  /** `provider/model-id` */
  model_id: string;
  display_name: string;
  risk_tier: RiskTier;
  owner: string;
  description: string;
  tags: string;
}

const MODEL_PATTERN = /^[^/\s]+\/\S+$/;
const SUGGESTIONS_ID = "registry-models";

/** Registers a model, and edits its entry. The model itself cannot be changed. */
export function EntryForm({ entry, onDone }: { entry?: RegisteredModel; onDone: () => void }) {
  const { rules } = texts;
  const registry = registryTexts;
  const form = useForm<EntryFields>({
    defaultValues: {
      model_id: entry === undefined ? "" : `${entry.provider}/${entry.model_id}`,
      display_name: entry === undefined || entry.display_name === entry.model_id ? "" : entry.display_name,
      risk_tier: entry?.risk_tier ?? "unclassified",
      owner: entry?.owner ?? "",
      description: entry?.description ?? "",
      tags: textOf(entry === undefined ? [] : linesOfTags(entry.tags)),
    },
  });
  const register = useRegisterModel();
  const update = useUpdateEntry(entry);
  const models = useModelNames();
  const { errors } = form.formState;

  async function save({ model_id: name, display_name, risk_tier, owner, description, tags }: EntryFields) {
    const body = {
      display_name: display_name.trim() || null, risk_tier, owner: owner.trim() || null, description: description.trim() || null,
      tags: tagsOfLines(linesOf(tags)),
    };
    if (entry === undefined) {
      const [provider = "", ...rest] = name.trim().split("/");
      await register.mutateAsync({ ...body, provider, model_id: rest.join("/"), validation_status: "draft" });
    } else {
      await update.mutateAsync(body);
    }
    toast(entry === undefined ? registry.registered(name) : rules.saved(name));
    onDone();
  }

  return (
    <DialogForm form={form} action={entry === undefined ? registry.register : rules.save} onSubmit={save} onCancel={onDone}>
      <TextField
        label={registry.model} hint={registry.modelHint} autoFocus={entry === undefined} autoComplete="off" spellCheck={false} autoCapitalize="none"
        readOnly={entry !== undefined} list={SUGGESTIONS_ID} fault={errors.model_id?.message}
        {...form.register("model_id", { required: registry.modelPattern, pattern: { value: MODEL_PATTERN, message: registry.modelPattern } })}
      />
      <datalist id={SUGGESTIONS_ID}>{models.data?.map((name) => <option key={name} value={name} />)}</datalist>
      <SelectField label={registry.tier} hint={registry.tierHints[form.watch("risk_tier")]} fault={errors.risk_tier?.message} {...form.register("risk_tier")}>
        {TIERS.map((tier) => <option key={tier} value={tier}>{registry.tiers[tier]}</option>)}
      </SelectField>
      <Fields>
        <TextField
          label={registry.displayName} hint={registry.displayNameHint} autoComplete="off" maxLength={255} fault={errors.display_name?.message}
          {...form.register("display_name")}
        />
        <TextField label={registry.owner} hint={registry.ownerHint} autoComplete="off" maxLength={255} fault={errors.owner?.message} {...form.register("owner")} />
      </Fields>
      <TextAreaField label={rules.description} rows={3} maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <TextAreaField label={registry.tags} hint={registry.tagsHint} rows={2} spellCheck={false} autoCapitalize="none" fault={errors.tags?.message} {...form.register("tags")} />
    </DialogForm>
  );
}
