import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, SelectField, TextAreaField, TextField } from "../parts/fields";
import shared from "../parts/rules.module.css";
import { toast } from "../parts/toasts";
import { Fields } from "../parts/Trial";
import { texts } from "../texts";
import { policyTexts } from "../texts/policies";
import { ACTIONS, type Policy, type PolicyAction, useSavePolicy } from "./api";
import { bodyOf, fieldsOf, type PolicyFields } from "./fields";
import { PolicyTrials } from "./PolicyTrials";

/** Creates and edits a policy. The user can test it before saving. */
export function PolicyForm({ policy, onDone }: { policy?: Policy; onDone: () => void }) {
  const { rules } = texts;
  const policies = policyTexts;
  const form = useForm<PolicyFields>({ defaultValues: fieldsOf(policy) });
  const save = useSavePolicy(policy);
  const { errors } = form.formState;
  const action = form.watch("action");
  return (
    <DialogForm
      form={form} action={policy === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async (fields) => {
        const { name } = await save.mutateAsync(bodyOf(fields));
        toast(policy === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField label={rules.description} autoComplete="off" maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <TextAreaField
        label={policies.condition} hint={policies.conditionHint} rows={3} maxLength={2000} spellCheck={false} autoCapitalize="none"
        className={shared["mono"]} fault={errors.condition?.message}
        {...form.register("condition", { required: policies.conditionRequired })}
      />
      <Fields>
        <SelectField
          label={rules.action} fault={errors.action?.message}
          {...form.register("action", {
            onChange: ({ target }: { target: { value: PolicyAction } }) => form.setValue("terminal", target.value !== "LOG"),
          })}
        >
          {ACTIONS.map((option) => <option key={option} value={option}>{policies.actions[option]}</option>)}
        </SelectField>
        <TextField
          label={rules.priority} hint={rules.priorityHint} type="number" step={1} fault={errors.priority?.message}
          {...form.register("priority", { valueAsNumber: true })}
        />
      </Fields>
      {action === "ROUTE" && (
        <TextField
          label={policies.routeTo} hint={policies.routeToHint} autoComplete="off" spellCheck={false} maxLength={320}
          fault={errors.route_to?.message} {...form.register("route_to")}
        />
      )}
      {action === "BLOCK" && (
        <TextField
          label={policies.message} hint={policies.messageHint} autoComplete="off" maxLength={500} fault={errors.message?.message}
          {...form.register("message")}
        />
      )}
      <CheckboxField label={policies.terminal} hint={policies.terminalHint} fault={errors.terminal?.message} {...form.register("terminal")} />
      <CheckboxField label={rules.enabled} hint={rules.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
      <PolicyTrials form={form} id={policy?.id} />
    </DialogForm>
  );
}
