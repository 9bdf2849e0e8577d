import { Link } from "@tanstack/react-router";
import { useForm } from "react-hook-form";
import { useFormVersion } from "../api/versions";
import { CheckboxField, SelectField, TextField } from "../parts/fields";
import { KEEP_TYPED } from "../parts/forms";
import { PolicyPanel } from "../parts/PolicyPanel";
import { organizationTexts } from "../texts/organization";
import { signInTexts } from "../texts/sign-in";
import { type SessionPolicy, useSessionPolicy, useUpdateSessionPolicy } from "./api";
import styles from "./SignInPage.module.css";

const LIMITS = ["unlimited", "1", "2", "5"] as const;

interface Fields {
  concurrent_sessions: SessionPolicy["concurrent_sessions"];
  refresh_token_enabled: boolean;
  refresh_token_ttl_days: string;
}

/** The session policy: how many sessions a user may have, and how long a session can be refreshed. */
export function SessionForm() {
  const organization = organizationTexts;
  const signIn = signInTexts;
  const policy = useSessionPolicy();
  const update = useUpdateSessionPolicy();
  const form = useForm<Fields>({
    ...(policy.data !== undefined && { values: fieldsOf(policy.data) }),
    resetOptions: KEEP_TYPED,
  });
  const { errors, dirtyFields } = form.formState;
  const version = useFormVersion(policy.data?.etag ?? "*", dirtyFields);

  async function save({ concurrent_sessions: limit, refresh_token_ttl_days: days, ...rest }: Partial<Fields>) {
    await update.mutateAsync({
      version: version.version,
      ...rest,
      // `enforce_single_session` has the same effect as the limit 1. Switch it off, because it would override another
      // limit.
      ...(limit !== undefined && { concurrent_sessions: limit, enforce_single_session: false }),
      ...(days !== undefined && { refresh_token_ttl_days: Number(days) }),
    });
  }

  return (
    <PolicyPanel
      title={signIn.sessions} form={form} query={policy} onSave={save} saved={signIn.saved} version={version}
      footer={<p className={styles["hint"]}>{signIn.sessionTimes} <Link to="/organization">{organization.title}</Link></p>}
    >
      <SelectField label={signIn.concurrent} hint={signIn.concurrentHint} source={limitSource(policy.data)} fault={errors.concurrent_sessions?.message} {...form.register("concurrent_sessions")}>
        {LIMITS.map((limit) => <option key={limit} value={limit}>{signIn.concurrents[limit]}</option>)}
      </SelectField>
      <CheckboxField
        label={signIn.refresh} hint={signIn.refreshHint} source={policy.data?.sources["refresh_token_enabled"]} fault={errors.refresh_token_enabled?.message} {...form.register("refresh_token_enabled")}
      />
      <TextField
        label={signIn.refreshDays} hint={signIn.refreshDaysHint} inputMode="numeric" source={policy.data?.sources["refresh_token_ttl_days"]} fault={errors.refresh_token_ttl_days?.message}
        {...form.register("refresh_token_ttl_days", { pattern: { value: /^\d+$/, message: organization.numberRequired } })}
      />
    </PolicyPanel>
  );
}

/** Returns the source of the session limit, which comes from one of two fields of the policy. */
function limitSource(policy: SessionPolicy | undefined) {
  return policy?.sources[policy.enforce_single_session ? "enforce_single_session" : "concurrent_sessions"];
}

function fieldsOf(policy: SessionPolicy): Fields {
  return {
    concurrent_sessions: policy.enforce_single_session ? "1" : policy.concurrent_sessions,
    refresh_token_enabled: policy.refresh_token_enabled,
    refresh_token_ttl_days: policy.refresh_token_ttl_days.toString(),
  };
}
