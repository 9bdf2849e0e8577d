import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField } from "../parts/fields";
import { switchTexts } from "../texts/switches";
import { type Reason, REASONS } from "./api";

/** Asks for the reason of a stop. */
export function Engage({ onSubmit, onCancel }: { onSubmit: (reason: Reason) => Promise<void>; onCancel: () => void }) {
  const form = useForm<{ reason: Reason }>({ defaultValues: { reason: "security_event" } });
  return (
    <DialogForm form={form} action={switchTexts.stopNow} look="danger" onSubmit={({ reason }) => onSubmit(reason)} onCancel={onCancel}>
      <SelectField label={switchTexts.reason} fault={form.formState.errors.reason?.message} {...form.register("reason")}>
        {REASONS.map((reason) => <option key={reason} value={reason}>{switchTexts.reasons[reason]}</option>)}
      </SelectField>
    </DialogForm>
  );
}

/** Confirms a release. */
export function Release({ onSubmit, onCancel }: { onSubmit: () => Promise<void>; onCancel: () => void }) {
  const form = useForm();
  return <DialogForm form={form} action={switchTexts.releaseNow} onSubmit={onSubmit} onCancel={onCancel}>{null}</DialogForm>;
}
