import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextAreaField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { toast } from "../parts/toasts";
import { dlpTexts, suppressionTexts } from "../texts/dlp";
import { CATEGORIES, type LibraryPattern, type Suppression, useSuppress } from "./customization";

/** Suppresses a built-in pattern that is active. */
export function SuppressionForm({ patternId = "", suppressed, library = [], onDone }: {
  patternId?: string | undefined;
  suppressed: Suppression[];
  library?: LibraryPattern[] | undefined;
  onDone: () => void;
}) {
  const dlp = dlpTexts;
  const suppressions = suppressionTexts;
  const suppress = useSuppress();
  const form = useForm({ values: { pattern_id: patternId, reason: "" }, resetOptions: KEEP_TYPED });
  const { errors } = form.formState;
  const taken = new Set(suppressed.map((row) => row.pattern_id));
  const options = library.filter(({ id }) => !taken.has(id));
  const chosen = library.find(({ id }) => id === form.watch("pattern_id"));
  return (
    <DialogForm
      form={form} action={suppressions.suppress} onCancel={onDone}
      onSubmit={async ({ pattern_id, reason }) => {
        await suppress.mutateAsync({ pattern_id, reason: reason.trim() || null });
        toast(suppressions.done(chosen?.name ?? pattern_id));
        onDone();
      }}
    >
      <SelectField
        // If the URL refers to a pattern, the form is rendered before the options are loaded. The new key renders the
        // select again with its options.
        key={String(library.length > 0)}
        label={suppressions.pattern} fault={errors.pattern_id?.message}
        hint={chosen && suppressions.patternText(chosen.entity_type, dlp.tiers[chosen.action_tier])}
        {...form.register("pattern_id", { required: suppressions.patternRequired })}
      >
        <option value="">{suppressions.choose}</option>
        {CATEGORIES.map((category) => (
          <optgroup key={category} label={suppressions.categories[category]}>
            {options.filter((pattern) => pattern.category === category).map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
          </optgroup>
        ))}
      </SelectField>
      <TextAreaField label={suppressions.reason} hint={suppressions.reasonHint} rows={2} maxLength={1000} fault={errors.reason?.message} {...form.register("reason")} />
    </DialogForm>
  );
}
