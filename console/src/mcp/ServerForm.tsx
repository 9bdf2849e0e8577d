import { useForm, type UseFormReturn } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextAreaField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import type { Server } from "./api";
import { credentialOf, CREDENTIALS, fieldsOf, type ServerFields } from "./server-fields";

const ACCESSES = ["restricted", "open"] as const;
const MIN_TIMEOUT_MS = 100;
const MAX_TIMEOUT_MS = 600_000;

/** Creates and edits a server. A stored credential can be kept or replaced, but not shown. */
export function ServerForm({ server, onSubmit, onCancel }: {
  server?: Server;
  onSubmit: (fields: ServerFields) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { rules } = texts;
  const mcp = mcpTexts;
  const form = useForm<ServerFields>({ defaultValues: fieldsOf(server) });
  const { errors } = form.formState;
  const stored = server === undefined ? "none" : credentialOf(server);
  const credential = form.watch("credential");
  const isTimeout = (text: string) => /^\d+$/.test(text) && Number(text) >= MIN_TIMEOUT_MS && Number(text) <= MAX_TIMEOUT_MS;
  return (
    <DialogForm form={form} action={server === undefined ? rules.create : rules.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={rules.name} hint={mcp.nameHint} autoFocus autoComplete="off" spellCheck={false} maxLength={63} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextAreaField label={mcp.description} rows={2} maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      <TextField
        label={mcp.url} hint={mcp.urlHint} type="url" autoComplete="off" spellCheck={false} fault={errors.url?.message}
        {...form.register("url", { required: mcp.urlRequired })}
      />
      <SelectField label={mcp.access} hint={mcp.accessHint} fault={errors.access?.message} {...form.register("access")}>
        {ACCESSES.map((access) => <option key={access} value={access}>{mcp.accesses[access]}</option>)}
      </SelectField>
      <TextField
        label={mcp.timeout} hint={mcp.timeoutHint} inputMode="numeric" autoComplete="off" fault={errors.timeout_ms?.message}
        {...form.register("timeout_ms", { validate: (text) => isTimeout(text) || mcp.timeoutInvalid })}
      />
      <SelectField label={mcp.credential} hint={mcp.credentialHint} {...form.register("credential")}>
        {stored !== "none" && <option value="keep">{mcp.keepCredential(mcp.credentials[stored])}</option>}
        {CREDENTIALS.map((kind) => <option key={kind} value={kind}>{mcp.credentials[kind]}</option>)}
      </SelectField>
      {credential === "header" && <HeaderFields form={form} />}
      {credential === "oauth" && <OAuthFields form={form} />}
    </DialogForm>
  );
}

function HeaderFields({ form: { register, formState: { errors } } }: { form: UseFormReturn<ServerFields> }) {
  const mcp = mcpTexts;
  const required = { required: mcp.required };
  return (
    <FieldSet label={mcp.credentials.header} fault={errors.header?.message}>
      <TextField label={mcp.headerName} autoComplete="off" spellCheck={false} fault={errors.header?.name?.message} {...register("header.name", required)} />
      <TextField
        label={mcp.headerValue} hint={mcp.headerHint} type="password" autoComplete="new-password" fault={errors.header?.value?.message}
        {...register("header.value", required)}
      />
    </FieldSet>
  );
}

function OAuthFields({ form: { register, formState: { errors } } }: { form: UseFormReturn<ServerFields> }) {
  const mcp = mcpTexts;
  const required = { required: mcp.required };
  const fault = errors.oauth;
  return (
    <FieldSet label={mcp.credentials.oauth} fault={fault?.message}>
      <TextField label={mcp.tokenUrl} type="url" autoComplete="off" spellCheck={false} fault={fault?.token_url?.message} {...register("oauth.token_url", required)} />
      <TextField label={mcp.clientId} autoComplete="off" spellCheck={false} fault={fault?.client_id?.message} {...register("oauth.client_id", required)} />
      <TextField
        label={mcp.clientSecret} hint={mcp.headerHint} type="password" autoComplete="new-password" fault={fault?.client_secret?.message}
        {...register("oauth.client_secret", required)}
      />
      <TextField label={mcp.scope} hint={mcp.scopeHint} autoComplete="off" spellCheck={false} {...register("oauth.scope")} />
      <SelectField label={mcp.clientAuthentication} {...register("oauth.client_authentication")}>
        <option value="client_secret_basic">client_secret_basic</option>
        <option value="client_secret_post">client_secret_post</option>
      </SelectField>
      <CheckboxField label={mcp.sendsResource} hint={mcp.sendsResourceHint} {...register("oauth.sends_resource")} />
    </FieldSet>
  );
}
