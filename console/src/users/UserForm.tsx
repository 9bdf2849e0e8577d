import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { userTexts } from "../texts/users";
import { ROLES, type Role, type User } from "./api";

export interface UserFields {
  email: string;
  display_name: string;
  username: string;
  role: Role;
  kind: User["kind"];
}

/** Creates and edits a user. The kind of an existing user cannot be changed. */
export function UserForm({ user, onSubmit, onCancel }: {
  user?: User | undefined;
  onSubmit: (fields: UserFields) => Promise<unknown>;
  onCancel: () => void;
}) {
  const form = useForm<UserFields>({
    defaultValues: {
      email: user?.email ?? "",
      display_name: user?.display_name ?? "",
      username: user?.username ?? "",
      role: user?.role ?? "user",
      kind: user?.kind ?? "user",
    },
  });
  const { errors } = form.formState;
  const users = userTexts;
  return (
    <DialogForm form={form} action={user === undefined ? users.create : users.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={users.email} type="email" autoFocus autoComplete="off" spellCheck={false} fault={errors.email?.message}
        {...form.register("email", { required: users.emailRequired })}
      />
      <TextField
        label={users.name} autoComplete="off" maxLength={255} fault={errors.display_name?.message}
        {...form.register("display_name")}
      />
      <TextField
        label={users.username} hint={users.usernameHint} autoComplete="off" spellCheck={false} maxLength={64}
        fault={errors.username?.message} {...form.register("username")}
      />
      <SelectField label={users.role} hint={users.roleHints[form.watch("role")]} fault={errors.role?.message} {...form.register("role")}>
        {ROLES.map((role) => <option key={role} value={role}>{texts.roleOf(role)}</option>)}
      </SelectField>
      {user === undefined && (
        <SelectField label={users.kind} hint={users.kindHints[form.watch("kind")]} fault={errors.kind?.message} {...form.register("kind")}>
          <option value="user">{users.kinds.user}</option>
          <option value="service">{users.kinds.service}</option>
        </SelectField>
      )}
    </DialogForm>
  );
}

/** Converts the fields to a request body. Empty texts become null. */
export function bodyOf({ email, display_name, username, role }: UserFields) {
  return { email: email.trim(), display_name: display_name.trim() || null, username: username.trim() || null, role };
}
