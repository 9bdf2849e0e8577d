import { useState } from "react";
import type { UseFormReturn } from "react-hook-form";
import { useGroups } from "../groups/api";
import { Button } from "../parts/Button";
import { SelectField } from "../parts/fields";
import { texts } from "../texts";
import { nameOf, type User } from "../users/api";
import { UserPicker } from "../users/UserPicker";
import { SCOPE_TYPES } from "./api";
import type { BudgetFields } from "./BudgetForm";
import styles from "./ScopeFields.module.css";
import { useApiKeys, useOAuthClients } from "./scopes";

/** A message of the API at a field that is not on the page would stop every later submission, so it is removed. */
function setScope(form: UseFormReturn<BudgetFields>, id: string) {
  form.setValue("scope_id", id, { shouldDirty: true });
  form.clearErrors("scope_id");
}

/** Chooses what a new budget is for. */
export function ScopeFields({ form }: { form: UseFormReturn<BudgetFields> }) {
  const { budgets } = texts;
  const { errors } = form.formState;
  const type = form.watch("scope_type");
  return (
    <>
      <SelectField
        label={budgets.scope} fault={errors.scope_type?.message}
        {...form.register("scope_type", { onChange: () => setScope(form, "") })}
      >
        {SCOPE_TYPES.map((type) => <option key={type} value={type}>{budgets.scopes[type]}</option>)}
      </SelectField>
      {type === "group" && <GroupField form={form} />}
      {type === "user" && <UserField key="user" form={form} onChoose={(user) => setScope(form, user?.id ?? "")} />}
      {type === "api_key" && <KeyField form={form} />}
      {type === "oauth_client" && <ClientField form={form} />}
    </>
  );
}

function GroupField({ form }: { form: UseFormReturn<BudgetFields> }) {
  const { budgets } = texts;
  const groups = useGroups();
  return (
    <Choice form={form} label={budgets.scopes.group} options={groups.data?.map(({ id, name }) => ({ id, name }))} />
  );
}

function ClientField({ form }: { form: UseFormReturn<BudgetFields> }) {
  const { budgets } = texts;
  const clients = useOAuthClients(true);
  return (
    <Choice form={form} label={budgets.scopes.oauth_client} options={clients.data?.map((client) => ({ id: client.client_id, name: client.name }))} />
  );
}

/** A key is chosen among those of its owner. */
function KeyField({ form }: { form: UseFormReturn<BudgetFields> }) {
  const { budgets } = texts;
  const [owner, setOwner] = useState<User | null>(null);
  const keys = useApiKeys(owner?.id, owner !== null);
  return (
    <>
      <UserField
        key="owner" form={form} label={budgets.owner}
        onChoose={(user) => {
          setOwner(user);
          setScope(form, "");
        }}
      />
      {owner !== null && (
        <Choice form={form} label={budgets.scopes.api_key} options={keys.data?.map((key) => ({ id: key.id, name: `${key.description} (${key.key_prefix}…)` }))} />
      )}
    </>
  );
}

/** Searches a user, and then shows who was chosen. */
function UserField({ form, label = texts.budgets.scopes.user, onChoose }: {
  form: UseFormReturn<BudgetFields>;
  label?: string;
  onChoose: (user: User | null) => void;
}) {
  const { budgets } = texts;
  const [chosen, setChosen] = useState<User | null>(null);
  const choose = (user: User | null) => {
    setChosen(user);
    onChoose(user);
  };
  if (chosen !== null) {
    return (
      <div className={styles["chosen"]} role="group" aria-label={label}>
        <span className={styles["names"]}><span className={styles["label"]}>{label}</span>{nameOf(chosen)}</span>
        <Button size="small" autoFocus onClick={() => choose(null)}>{budgets.changeUser}</Button>
      </div>
    );
  }
  return (
    <UserPicker label={label} action={budgets.choose} fault={form.formState.errors.scope_id?.message} onChoose={choose} />
  );
}

function Choice({ form, label, options }: {
  form: UseFormReturn<BudgetFields>;
  label: string;
  options: { id: string; name: string }[] | undefined;
}) {
  return (
    <SelectField label={label} fault={form.formState.errors.scope_id?.message} {...form.register("scope_id")}>
      <option value="">{options?.length === 0 ? texts.budgets.noneThere : texts.budgets.chooseOne}</option>
      {options?.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </SelectField>
  );
}
