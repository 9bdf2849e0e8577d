import { useState } from "react";
import type { UseFormReturn } from "react-hook-form";
import { GroupSelect } from "../groups/GroupSelect";
import { Button } from "../parts/Button";
import { SelectField } from "../parts/fields";
import { SearchedSelectField } from "../parts/SearchedSelect";
import { useKeyName } from "../requests/choosing";
import { budgetTexts } from "../texts/budgets";
import { nameOf, type User } from "../users/api";
import { UserPicker } from "../users/UserPicker";
import { SCOPE_TYPES } from "./api";
import type { BudgetFields } from "./BudgetForm";
import styles from "./ScopeFields.module.css";
import { useClientName, useClientOptions, useKeyOptions } from "./scopes";

/** Sets the scope, and removes the message of the former one. */
function setScope(form: UseFormReturn<BudgetFields>, id: string) {
  form.setValue("scope_id", id, { shouldDirty: true });
  form.clearErrors("scope_id");
}

/** Selects the scope of a new budget. */
export function ScopeFields({ form }: { form: UseFormReturn<BudgetFields> }) {
  const budgets = budgetTexts;
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
  const budgets = budgetTexts;
  return (
    <GroupSelect
      label={budgets.scopes.group} fault={form.formState.errors.scope_id?.message} value={form.watch("scope_id")}
      onChange={(id) => setScope(form, id)}
    >
      <option value="">{budgets.chooseOne}</option>
    </GroupSelect>
  );
}

function ClientField({ form }: { form: UseFormReturn<BudgetFields> }) {
  const budgets = budgetTexts;
  const id = form.watch("scope_id");
  const name = useClientName(id || null);
  return (
    <SearchedSelectField
      label={budgets.scopes.oauth_client} fault={form.formState.errors.scope_id?.message} value={id} onChange={(next) => setScope(form, next)}
      useOptions={useClientOptions} chosen={id === "" ? undefined : { id, name: name ?? id }}
    >
      <option value="">{budgets.chooseOne}</option>
    </SearchedSelectField>
  );
}

/** Selects the owner of an API key first, and then one of the owner's keys. */
function KeyField({ form }: { form: UseFormReturn<BudgetFields> }) {
  const budgets = budgetTexts;
  const [owner, setOwner] = useState<User | null>(null);
  return (
    <>
      <UserField
        key="owner" form={form} label={budgets.owner}
        onChoose={(user) => {
          setOwner(user);
          setScope(form, "");
        }}
      />
      {owner !== null && <KeyOfOwner key={owner.id} form={form} owner={owner.id} />}
    </>
  );
}

function KeyOfOwner({ form, owner }: { form: UseFormReturn<BudgetFields>; owner: string }) {
  const budgets = budgetTexts;
  const id = form.watch("scope_id");
  const name = useKeyName(id || null);
  const first = useKeyOptions(owner, undefined);
  return (
    <SearchedSelectField
      label={budgets.scopes.api_key} fault={form.formState.errors.scope_id?.message} value={id} onChange={(next) => setScope(form, next)}
      useOptions={(search) => useKeyOptions(owner, search)} chosen={id === "" ? undefined : { id, name: name ?? id }}
    >
      <option value="">{first?.total === 0 ? budgets.noneThere : budgets.chooseOne}</option>
    </SearchedSelectField>
  );
}

/** Searches for a user. Shows the selected user instead of the search after the selection. */
function UserField({ form, label = budgetTexts.scopes.user, onChoose }: {
  form: UseFormReturn<BudgetFields>;
  label?: string;
  onChoose: (user: User | null) => void;
}) {
  const budgets = budgetTexts;
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
