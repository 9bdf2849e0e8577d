import { Link } from "@tanstack/react-router";
import { useForm } from "react-hook-form";
import { CheckboxField, SelectField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { type SessionPolicy, useSessionPolicy, useUpdateSessionPolicy } from "./api";
import { PolicyPanel } from "./PolicyPanel";
import styles from "./SignInPage.module.css";

const LIMITS = ["unlimited", "1", "2", "5"] as const;

interface Fields {
  concurrent_sessions: SessionPolicy["concurrent_sessions"];
  refresh_token_enabled: boolean;
  refresh_token_ttl_days: string;
}

/** How many sessions a user may have, and how long they can be refreshed. */
export function SessionForm() {
  const { signIn, organization } = texts;
  const policy = useSessionPolicy();
  const update = useUpdateSessionPolicy();
  const form = useForm<Fields>({
    ...(policy.data !== undefined && { values: fieldsOf(policy.data) }),
    resetOptions: { keepDirtyValues: true },
  });
  const { errors } = form.formState;

  function save({ concurrent_sessions: limit, refresh_token_ttl_days: days, ...rest }: Partial<Fields>) {
    return update.mutateAsync({
      ...rest,
      // `enforce_single_session` says the same as the limit 1, and would stay in force beside another limit.
      ...(limit !== undefined && { concurrent_sessions: limit, enforce_single_session: false }),
      ...(days !== undefined && { refresh_token_ttl_days: Number(days) }),
    });
  }

  return (
    <PolicyPanel
      title={signIn.sessions} form={form} query={policy} onSave={save}
      footer={<p className={styles["hint"]}>{signIn.sessionTimes} <Link to="/organization">{organization.title}</Link></p>}
    >
      <SelectField label={signIn.concurrent} hint={signIn.concurrentHint} fault={errors.concurrent_sessions?.message} {...form.register("concurrent_sessions")}>
        {LIMITS.map((limit) => <option key={limit} value={limit}>{signIn.concurrents[limit]}</option>)}
      </SelectField>
      <CheckboxField
        label={signIn.refresh} hint={signIn.refreshHint} fault={errors.refresh_token_enabled?.message} {...form.register("refresh_token_enabled")}
      />
      <TextField
        label={signIn.refreshDays} hint={signIn.refreshDaysHint} inputMode="numeric" fault={errors.refresh_token_ttl_days?.message}
        {...form.register("refresh_token_ttl_days", { pattern: { value: /^\d+$/, message: organization.numberRequired } })}
      />
    </PolicyPanel>
  );
}

function fieldsOf(policy: SessionPolicy): Fields {
  return {
    concurrent_sessions: policy.enforce_single_session ? "1" : policy.concurrent_sessions,
    refresh_token_enabled: policy.refresh_token_enabled,
    refresh_token_ttl_days: policy.refresh_token_ttl_days.toString(),
  };
}
