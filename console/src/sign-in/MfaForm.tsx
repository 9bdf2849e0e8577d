import { useForm } from "react-hook-form";
import { ApiError } from "../api/errors";
import { useFormVersion } from "../api/versions";
import { CheckboxField, SelectField, SourceHint, TextField } from "../parts/fields";
import { utc } from "../parts/format";
import { KEEP_TYPED } from "../parts/forms";
import { PolicyPanel } from "../parts/PolicyPanel";
import { organizationTexts } from "../texts/organization";
import { signInTexts } from "../texts/sign-in";
import { type MfaPolicy, useMfaPolicy, useUpdateMfaPolicy } from "./api";
import styles from "./SignInPage.module.css";

const LEVELS = ["off", "optional", "required"] as const;
const METHODS = ["totp", "webauthn"] as const;
const SECONDS_PER_MINUTE = 60;

interface Fields {
  enforcement_level: MfaPolicy["enforcement_level"];
  grace_period_hours: string;
  enrollment_deadline: string;
  mfa_methods: MfaPolicy["mfa_methods"];
  sensitive_endpoints_require_mfa: boolean;
  mfa_assertion_ttl_minutes: string;
}

/** The policy for second factors: who needs one, from which time, and which methods are allowed. */
export function MfaForm() {
  const signIn = signInTexts;
  const policy = useMfaPolicy();
  const update = useUpdateMfaPolicy();
  const form = useForm<Fields>({
    ...(policy.data !== undefined && { values: fieldsOf(policy.data) }),
    resetOptions: KEEP_TYPED,
  });
  const { errors, dirtyFields } = form.formState;
  const version = useFormVersion(policy.data?.etag ?? "*", dirtyFields);
  const level = form.watch("enforcement_level") ?? "off";
  const deadline = form.watch("enrollment_deadline") ?? "";
  const whole = { pattern: { value: /^\d+$/, message: organizationTexts.numberRequired } };

  async function save(changed: Partial<Fields>) {
    const { grace_period_hours: hours, enrollment_deadline: deadline, mfa_assertion_ttl_minutes: minutes, ...rest } = changed;
    const stored = await update.mutateAsync({
      version: version.version,
      ...rest,
      ...(hours !== undefined && { grace_period_hours: Number(hours) }),
      ...(deadline !== undefined && { enrollment_deadline: deadline === "" ? null : new Date(deadline).toISOString() }),
      ...(minutes !== undefined && { mfa_assertion_ttl_seconds: Math.round(Number(minutes) * SECONDS_PER_MINUTE) }),
    });
    if (rest.enforcement_level !== undefined && stored.enforcement_level !== rest.enforcement_level) {
      throw new ApiError(409, signIn.levelForced, null, { enforcement_level: signIn.levelForced });
    }
  }

  return (
    <PolicyPanel title={signIn.factors} form={form} query={policy} onSave={save} saved={signIn.saved} version={version}>
      <SelectField
        label={signIn.level} hint={signIn.levelHints[level]} source={policy.data?.sources["enforcement_level"]} fault={errors.enforcement_level?.message} {...form.register("enforcement_level")}
      >
        {LEVELS.map((value) => <option key={value} value={value}>{signIn.levels[value]}</option>)}
      </SelectField>
      {level === "required" && (
        <>
          <TextField
            label={signIn.grace} hint={signIn.graceHint} inputMode="numeric" source={policy.data?.sources["grace_period_hours"]} fault={errors.grace_period_hours?.message}
            {...form.register("grace_period_hours", whole)}
          />
          <TextField
            label={signIn.deadline} hint={signIn.deadlineHint} type="datetime-local" title={isMoment(deadline) ? utc(new Date(deadline).toISOString()) : undefined} source={policy.data?.sources["enrollment_deadline"]} fault={errors.enrollment_deadline?.message}
            {...form.register("enrollment_deadline")}
          />
        </>
      )}
      <fieldset className={styles["group"]}>
        <legend className={styles["legend"]}>{signIn.methods}</legend>
        {METHODS.map((method) => (
          <CheckboxField
            key={method} value={method} label={signIn.methodNames[method]}
            {...form.register("mfa_methods", { validate: (chosen) => chosen.length > 0 || signIn.methodRequired })}
          />
        ))}
        {errors.mfa_methods !== undefined && <p className={styles["fault"]} role="alert">{errors.mfa_methods.message}</p>}
        {policy.data !== undefined && <SourceHint source={policy.data.sources["mfa_methods"]} />}
      </fieldset>
      <CheckboxField
        label={signIn.sensitive} hint={signIn.sensitiveHint} source={policy.data?.sources["sensitive_endpoints_require_mfa"]} fault={errors.sensitive_endpoints_require_mfa?.message}
        {...form.register("sensitive_endpoints_require_mfa")}
      />
      <TextField
        label={signIn.assertionMinutes} hint={signIn.assertionMinutesHint} inputMode="numeric" source={policy.data?.sources["mfa_assertion_ttl_seconds"]} fault={errors.mfa_assertion_ttl_minutes?.message}
        {...form.register("mfa_assertion_ttl_minutes", whole)}
      />
    </PolicyPanel>
  );
}

function fieldsOf(policy: MfaPolicy): Fields {
  return {
    enforcement_level: policy.enforcement_level,
    grace_period_hours: policy.grace_period_hours.toString(),
    enrollment_deadline: policy.enrollment_deadline === null ? "" : localTime(policy.enrollment_deadline),
    mfa_methods: policy.mfa_methods,
    sensitive_endpoints_require_mfa: policy.sensitive_endpoints_require_mfa,
    mfa_assertion_ttl_minutes: (policy.mfa_assertion_ttl_seconds / SECONDS_PER_MINUTE).toString(),
  };
}

function isMoment(value: string): boolean {
  return !Number.isNaN(Date.parse(value));
}

/** Returns a moment in the format of an input of the type `datetime-local`. */
function localTime(moment: string): string {
  const date = new Date(moment);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
