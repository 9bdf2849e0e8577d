import { useForm } from "react-hook-form";
import type { Schemas } from "../api/client";
import { isOutdated } from "../api/errors";
import { useRights } from "../api/queries";
import { useFormVersion } from "../api/versions";
import { Button } from "../parts/Button";
import { TextField } from "../parts/fields";
import { AFTER_SUBMIT, KEEP_TYPED, showFaults } from "../parts/forms";
import { Panel } from "../parts/Page";
import { toast } from "../parts/toasts";
import { useUnsaved } from "../parts/unsaved";
import { organizationTexts } from "../texts/organization";
import { useUpdateSettings } from "./api";
import styles from "./OrganizationPage.module.css";

export function SettingsForm({ settings }: { settings: Schemas["Settings"] }) {
  const organization = organizationTexts;
  const { administers } = useRights();
  const update = useUpdateSettings();
  const form = useForm({ values: fieldsOf(settings), resetOptions: KEEP_TYPED });
  const { errors, isDirty, dirtyFields, isSubmitting } = form.formState;
  useUnsaved(isDirty && !isSubmitting);
  const { version, accept } = useFormVersion(settings.updated_at, dirtyFields);
  const submit = form.handleSubmit(async (fields) => {
    try {
      await update.mutateAsync({
        ...fields,
        updatedAt: version,
        contact_email: fields.contact_email.trim() || null,
        session_timeout_minutes: Number(fields.session_timeout_minutes),
        idle_timeout_minutes: Number(fields.idle_timeout_minutes),
      });
      form.reset(fields, AFTER_SUBMIT);
      toast(organization.saved);
    } catch (error) {
      showFaults(form, error);
      if (isOutdated(error)) accept();
    }
  });
  const readOnly = !administers || isSubmitting;
  const minutes = { pattern: { value: /^\d+$/, message: organization.numberRequired } };
  return (
    <Panel title={organization.settings}>
      <form className={styles["form"]} onSubmit={(event) => void submit(event)} noValidate>
        {errors.root !== undefined && <p className={styles["fault"]} role="alert">{errors.root.message}</p>}
        <TextField label={organization.name} readOnly={readOnly} maxLength={255} fault={errors.display_name?.message} {...form.register("display_name", { required: organization.required })} />
        <TextField label={organization.contact} type="email" readOnly={readOnly} fault={errors.contact_email?.message} {...form.register("contact_email")} />
        <TextField label={organization.timezone} hint={organization.timezoneHint} readOnly={readOnly} spellCheck={false} fault={errors.timezone?.message} {...form.register("timezone", { required: organization.required })} />
        <TextField label={organization.sessionMinutes} inputMode="numeric" readOnly={readOnly} source={settings.sources["session_timeout_minutes"]} fault={errors.session_timeout_minutes?.message} {...form.register("session_timeout_minutes", minutes)} />
        <TextField label={organization.idleMinutes} inputMode="numeric" readOnly={readOnly} source={settings.sources["idle_timeout_minutes"]} fault={errors.idle_timeout_minutes?.message} {...form.register("idle_timeout_minutes", minutes)} />
        {administers && <div><Button look="primary" type="submit" busy={isSubmitting} disabled={!isDirty}>{organization.save}</Button></div>}
      </form>
    </Panel>
  );
}

function fieldsOf(settings: Schemas["Settings"]) {
  return {
    display_name: settings.display_name,
    contact_email: settings.contact_email ?? "",
    timezone: settings.timezone,
    session_timeout_minutes: settings.session_timeout_minutes.toString(),
    idle_timeout_minutes: settings.idle_timeout_minutes.toString(),
  };
}
