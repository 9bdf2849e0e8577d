import { useForm } from "react-hook-form";
import { type Scope, SCOPES } from "../oauth/api";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextField } from "../parts/fields";
import { date, utc } from "../parts/format";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { oauthTexts } from "../texts/oauth";
import type { ApiKey, NewKey } from "./api";

interface Fields {
  description: string;
  expires_in_days: string;
  is_limited: boolean;
  scopes: Scope[];
}

/** The choice that leaves the expiry as it is. */
const KEEP = "keep";

/** Creates and edits a key. `onSubmit` receives the whole new key, or the changed fields of the existing one. */
export function KeyForm({ apiKey, onSubmit, onCancel }: {
  apiKey?: ApiKey;
  onSubmit: (body: NewKey) => Promise<unknown>;
  onCancel: () => void;
}) {
  const form = useForm<Fields>({
    defaultValues: {
      description: apiKey?.description ?? "",
      expires_in_days: apiKey === undefined ? "90" : KEEP,
      is_limited: (apiKey?.scopes ?? null) !== null,
      scopes: apiKey?.scopes ?? [],
    },
  });
  const { errors, dirtyFields } = form.formState;
  return (
    <DialogForm
      form={form} action={apiKey === undefined ? keyTexts.create : texts.rules.save} onCancel={onCancel}
      onSubmit={({ description, expires_in_days: days, is_limited: isLimited, scopes }) =>
        onSubmit({
          description,
          ...(days !== KEEP && { expires_in_days: days === "" ? null : Number(days) }),
          ...((dirtyFields.is_limited === true || dirtyFields.scopes !== undefined) && { scopes: isLimited ? scopes : null }),
        })}
    >
      <TextField
        label={keyTexts.name} hint={keyTexts.nameHint} fault={errors.description?.message} autoFocus maxLength={255}
        autoComplete="off" {...form.register("description", { required: keyTexts.nameRequired })}
      />
      <SelectField
        label={keyTexts.expiry} hint={apiKey && keyTexts.expiryHint} title={apiKey?.expires_at == null ? undefined : keyTexts.expiresNow(utc(apiKey.expires_at))} fault={errors.expires_in_days?.message} {...form.register("expires_in_days")}
      >
        {apiKey !== undefined && (
          <option value={KEEP}>{apiKey.expires_at === null ? keyTexts.keepWithout : keyTexts.keepExpiry(date(apiKey.expires_at))}</option>
        )}
        {["7", "30", "90", "365", ""].map((days) => <option key={days} value={days}>{keyTexts.expiries[days]}</option>)}
      </SelectField>
      <CheckboxField
        label={keyTexts.limited} hint={keyTexts.limitedHint} fault={form.watch("is_limited") ? undefined : errors.scopes?.message}
        {...form.register("is_limited")}
      />
      {form.watch("is_limited") && (
        <FieldSet label={keyTexts.scopes} fault={errors.scopes?.message}>
          {SCOPES.map((scope) => (
            <CheckboxField key={scope} value={scope} label={scope} hint={oauthTexts.scopeHints[scope]} {...form.register("scopes")} />
          ))}
        </FieldSet>
      )}
    </DialogForm>
  );
}
