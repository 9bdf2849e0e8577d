import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { aliasTexts } from "../texts/aliases";
import { BALANCES, type ModelAlias, useSaveAlias } from "./api";
import { DeploymentsField } from "./DeploymentsField";
import { type AliasFields, bodyOf, fieldsOf } from "./fields";

/** Creates and edits a model alias. */
export function AliasForm({ alias, onDone }: { alias?: ModelAlias; onDone: () => void }) {
  const { rules } = texts;
  const form = useForm<AliasFields>({ defaultValues: fieldsOf(alias) });
  const save = useSaveAlias(alias);
  const { errors } = form.formState;
  const balance = form.watch("balance");
  return (
    <DialogForm
      form={form} action={alias === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { name } = await save.mutateAsync(bodyOf(fields));
        toast(alias === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} hint={alias === undefined ? aliasTexts.nameHint : aliasTexts.nameFixed} autoComplete="off" spellCheck={false} autoCapitalize="none"
        readOnly={alias !== undefined} maxLength={64} fault={errors.name?.message} {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField label={rules.description} autoComplete="off" maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <SelectField label={aliasTexts.balance} hint={aliasTexts.balanceHints[balance]} fault={errors.balance?.message} {...form.register("balance")}>
        {BALANCES.map((option) => <option key={option} value={option}>{aliasTexts.balances[option]}</option>)}
      </SelectField>
      <CheckboxField
        label={aliasTexts.sticky} hint={aliasTexts.stickyHint} fault={errors.sticky?.message} disabled={balance !== "weighted"} {...form.register("sticky")}
      />
      <DeploymentsField form={form} />
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
    </DialogForm>
  );
}
