import { useForm } from "react-hook-form";
import type { Schemas } from "../api/client";
import { useSession } from "../api/queries";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextAreaField, TextField } from "../parts/fields";
import { linesOf, textOf } from "../parts/lines";
import { texts } from "../texts";
import { oauthTexts } from "../texts/oauth";
import { organizationTexts } from "../texts/organization";
import { type OAuthClient, type Scope, SCOPES, TIERS } from "./api";
import styles from "./ClientForm.module.css";

export interface ClientFields {
  name: string;
  scopes: Scope[];
  rate_limit_tier: OAuthClient["rate_limit_tier"];
  token_lifetime_minutes: string;
  platform_wide: boolean;
  redirect_uris: string;
  user_scopes: Scope[];
  public: boolean;
}

const SECONDS_PER_MINUTE = 60;

/** Creates and edits an OAuth client. When operators create a client, they choose whether it is for all
 * organizations. */
export function ClientForm({ client, onSubmit, onCancel }: {
  client?: OAuthClient;
  onSubmit: (fields: ClientFields) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { rules } = texts;
  const oauth = oauthTexts;
  const organization = organizationTexts;
  const { operator } = useSession().user;
  const form = useForm<ClientFields>({
    defaultValues: {
      name: client?.name ?? "",
      scopes: client?.scopes ?? ["chat:write"],
      rate_limit_tier: client?.rate_limit_tier ?? "standard",
      token_lifetime_minutes: ((client?.token_lifetime_seconds ?? 3600) / SECONDS_PER_MINUTE).toString(),
      platform_wide: client !== undefined && client.tenant_id === null,
      redirect_uris: textOf(client?.redirect_uris),
      user_scopes: client?.user_scopes ?? [],
      public: client?.public ?? false,
    },
  });
  const { errors } = form.formState;
  return (
    <DialogForm form={form} action={client === undefined ? rules.create : rules.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={rules.name} hint={oauth.nameHint} autoFocus autoComplete="off" maxLength={255} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <fieldset className={styles["group"]}>
        <legend className={styles["legend"]}>{oauth.scopes}</legend>
        {SCOPES.map((scope) => (
          <CheckboxField key={scope} value={scope} label={scope} hint={oauth.scopeHints[scope]} {...form.register("scopes")} />
        ))}
        {errors.scopes !== undefined && <p className={styles["fault"]} role="alert">{errors.scopes.message}</p>}
      </fieldset>
      <SelectField
        label={oauth.tier} hint={oauth.tierHint} fault={errors.rate_limit_tier?.message} {...form.register("rate_limit_tier")}
      >
        {TIERS.map((tier) => <option key={tier} value={tier}>{oauth.tiers[tier]}</option>)}
      </SelectField>
      <TextField
        label={oauth.lifetime} hint={oauth.lifetimeHint} inputMode="decimal" fault={errors.token_lifetime_minutes?.message}
        {...form.register("token_lifetime_minutes", { validate: (minutes) => Number(minutes) > 0 || organization.numberRequired })}
      />
      {operator && client === undefined && (
        <CheckboxField label={oauth.platformWide} hint={oauth.platformWideHint} {...form.register("platform_wide")} />
      )}
      <TextAreaField
        label={oauth.redirects} hint={oauth.redirectsHint} rows={3} spellCheck={false} fault={errors.redirect_uris?.message}
        {...form.register("redirect_uris")}
      />
      <FieldSet label={oauth.userScopes} hint={oauth.userScopesHint} fault={errors.user_scopes?.message}>
        {SCOPES.map((scope) => <CheckboxField key={scope} value={scope} label={scope} {...form.register("user_scopes")} />)}
      </FieldSet>
      <CheckboxField label={oauth.public} hint={oauth.publicHint} fault={errors.public?.message} {...form.register("public")} />
    </DialogForm>
  );
}

/** Converts the fields to a request body. */
export function bodyOf({ name, scopes, rate_limit_tier, token_lifetime_minutes: minutes, redirect_uris, user_scopes, public: isPublic }: ClientFields) {
  return {
    name, scopes, rate_limit_tier,
    token_lifetime_seconds: Math.round(Number(minutes) * SECONDS_PER_MINUTE),
    redirect_uris: linesOf(redirect_uris),
    user_scopes,
    public: isPublic,
  } satisfies Schemas["OAuthClientUpdate"];
}
