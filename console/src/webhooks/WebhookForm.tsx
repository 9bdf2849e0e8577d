import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { webhookTexts } from "../texts/webhooks";
import { eventName, type EventType, type Webhook, type WebhookUpdate } from "./api";
import { EVENT_TYPES } from "./choices";
import styles from "./WebhookForm.module.css";

export interface WebhookFields {
  name: string;
  url: string;
  events: EventType[];
  secret: string;
  enabled: boolean;
  include_logged: boolean;
}

/** Creates and edits a webhook. A stored secret can be replaced, but not shown. */
export function WebhookForm({ webhook, onSubmit, onCancel }: {
  webhook?: Webhook;
  onSubmit: (fields: WebhookFields) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { rules } = texts;
  const webhooks = webhookTexts;
  const form = useForm<WebhookFields>({
    defaultValues: {
      name: webhook?.name ?? "",
      url: webhook?.url ?? "",
      events: (webhook?.events ?? []) as EventType[],
      secret: "",
      enabled: webhook?.enabled ?? true,
      include_logged: webhook?.include_logged ?? false,
    },
  });
  const { errors } = form.formState;
  return (
    <DialogForm form={form} action={webhook === undefined ? rules.create : rules.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={rules.name} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextField
        label={webhooks.url} hint={webhooks.urlHint} type="url" autoComplete="off" spellCheck={false} fault={errors.url?.message}
        {...form.register("url", { required: webhooks.urlRequired })}
      />
      <fieldset className={styles["events"]}>
        <legend className={styles["legend"]}>{webhooks.events}</legend>
        {EVENT_TYPES.map((event) => (
          <CheckboxField
            key={event} value={event} label={eventName(event)} hint={`${webhooks.eventHints[event]} ${webhooks.inApi(event)}.`}
            {...form.register("events", { validate: (chosen) => chosen.length > 0 || webhooks.eventsRequired })}
          />
        ))}
        {errors.events !== undefined && <p className={styles["fault"]} role="alert">{errors.events.message}</p>}
      </fieldset>
      <CheckboxField
        label={webhooks.includeLogged} hint={webhooks.includeLoggedHint} fault={errors.include_logged?.message} {...form.register("include_logged")}
      />
      <TextField
        label={webhooks.secret} hint={webhook === undefined ? webhooks.secretHint : webhooks.secretKept} type="password"
        autoComplete="new-password" fault={errors.secret?.message} {...form.register("secret")}
      />
      <CheckboxField label={rules.enabled} hint={webhooks.enabledHint} fault={errors.enabled?.message} {...form.register("enabled")} />
    </DialogForm>
  );
}

/** Converts the fields to a request body. If the secret is empty, it is not sent, and the API keeps the stored one. */
export function bodyOf({ secret, ...fields }: WebhookFields): WebhookUpdate {
  return { ...fields, ...(secret !== "" && { secret }) };
}
