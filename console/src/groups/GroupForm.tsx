import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { TextField } from "../parts/fields";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { groupTexts } from "../texts/groups";
import { type Group, useSaveGroup } from "./api";

interface GroupFields {
  name: string;
  description: string;
  external_group_id: string;
}

/** Creates and edits a group. */
export function GroupForm({ group, onDone }: { group?: Group; onDone: () => void }) {
  const { rules } = texts;
  const groups = groupTexts;
  const form = useForm<GroupFields>({
    defaultValues: {
      name: group?.name ?? "",
      description: group?.description ?? "",
      external_group_id: group?.external_group_id ?? "",
    },
  });
  const save = useSaveGroup(group);
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={group === undefined ? rules.create : rules.save} onCancel={onDone}
      onSubmit={async ({ name, description, external_group_id }) => {
        await save.mutateAsync({
          name: name.trim(), description: description.trim() || null, external_group_id: external_group_id.trim() || null,
        });
        toast(group === undefined ? rules.created(name) : rules.saved(name));
        onDone();
      }}
    >
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField label={rules.description} autoComplete="off" maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <TextField
        label={groups.externalId} hint={groups.externalIdHint} autoComplete="off" spellCheck={false} maxLength={255}
        fault={errors.external_group_id?.message} {...form.register("external_group_id")}
      />
    </DialogForm>
  );
}
