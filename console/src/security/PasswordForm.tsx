import { useForm } from "react-hook-form";
import type { Schemas } from "../api/client";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { securityTexts } from "../texts/security";

export function PasswordForm({ onSubmit, onCancel }: {
  onSubmit: (body: Schemas["PasswordChange"]) => Promise<unknown>;
  onCancel: () => void;
}) {
  const security = securityTexts;
  const form = useForm({ defaultValues: { current_password: "", new_password: "", repeated: "" } });
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={security.changePassword} onCancel={onCancel}
      onSubmit={({ current_password, new_password }) => onSubmit({ current_password, new_password })}
    >
      <TextField
        label={security.currentPassword} type="password" autoComplete="current-password" autoFocus
        fault={errors.current_password?.message} {...form.register("current_password", { required: security.required })}
      />
      <TextField
        label={security.newPassword} type="password" autoComplete="new-password" hint={security.newPasswordHint}
        fault={errors.new_password?.message} {...form.register("new_password", { required: security.required })}
      />
      <TextField
        label={security.repeated} type="password" autoComplete="new-password" fault={errors.repeated?.message}
        {...form.register("repeated", { validate: (value, { new_password }) => value === new_password || security.notTheSame })}
      />
    </DialogForm>
  );
}
