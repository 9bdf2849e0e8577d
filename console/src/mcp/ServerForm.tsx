import { useForm, type UseFormReturn } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { CheckboxField, FieldSet, SelectField, TextAreaField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Server, type StdioCommand, useStdioCommands } from "./api";
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
  const commands = useStdioCommands();
  const form = useForm<ServerFields>({ defaultValues: fieldsOf(server) });
  const { errors } = form.formState;
  const stored = server === undefined ? "none" : credentialOf(server);
  const { credential, transport, name } = form.watch();
  const isTimeout = (text: string) => /^\d+$/.test(text) && Number(text) >= MIN_TIMEOUT_MS && Number(text) <= MAX_TIMEOUT_MS;
  return (
    <DialogForm form={form} action={server === undefined ? rules.create : rules.save} onSubmit={onSubmit} onCancel={onCancel}>
      <TextField
        label={rules.name} hint={mcp.nameHint} autoFocus autoComplete="off" spellCheck={false} maxLength={63} fault={errors.name?.message}
        {...form.register("name", { required: rules.nameRequired })}
      />
      <TextAreaField label={mcp.description} rows={2} maxLength={2000} fault={errors.description?.message} {...form.register("description")} />
      {server === undefined && commands !== undefined && commands.length > 0 && (
        <SelectField label={mcp.transport} hint={mcp.transportHint} {...form.register("transport")}>
          <option value="url">{mcp.transports.url}</option>
          <option value="stdio">{mcp.transports.stdio}</option>
        </SelectField>
      )}
      {transport === "stdio" ? <StdioFields form={form} server={server} commands={commands} /> : (
        <TextField
          label={mcp.url} hint={mcp.urlHint} type="url" autoComplete="off" spellCheck={false} fault={errors.url?.message}
          {...form.register("url", { required: mcp.urlRequired })}
        />
      )}
      <SelectField label={mcp.access} hint={mcp.accessHint} fault={errors.access?.message} {...form.register("access")}>
        {ACCESSES.map((access) => <option key={access} value={access}>{mcp.accesses[access]}</option>)}
      </SelectField>
      <TextField
        label={mcp.timeout} hint={mcp.timeoutHint} inputMode="numeric" autoComplete="off" fault={errors.timeout_ms?.message}
        {...form.register("timeout_ms", { validate: (text) => isTimeout(text) || mcp.timeoutInvalid })}
      />
      {transport === "url" && (
        <>
          <SelectField label={mcp.credential} hint={mcp.credentialHint} {...form.register("credential")}>
            {stored !== "none" && <option value="keep">{mcp.keepCredential(mcp.credentials[stored])}</option>}
            {CREDENTIALS.map((kind) => <option key={kind} value={kind}>{mcp.credentials[kind]}</option>)}
          </SelectField>
          {credential === "header" && <HeaderFields form={form} />}
          {credential === "oauth" && <OAuthFields form={form} />}
          {credential === "user_oauth" && <UserOAuthFields form={form} name={name} />}
        </>
      )}
    </DialogForm>
  );
}

function StdioFields({ form, server, commands }: { form: UseFormReturn<ServerFields>; server: Server | undefined; commands: readonly StdioCommand[] | undefined }) {
  const mcp = mcpTexts;
  const { register, watch, formState: { errors } } = form;
  const stored = server?.stdio;
  const chosen = commands?.find((command) => command.name === watch("stdio.command"));
  return (
    <>
      <SelectField
        label={mcp.command} hint={mcp.commandHint} fault={errors.stdio?.command?.message}
        {...register("stdio.command", { validate: (name) => name !== "" || Boolean(stored) || mcp.commandRequired })}
      >
        <option value="">{stored ? mcp.keepCommand(stored.command) : mcp.chooseCommand}</option>
        {commands?.map(({ name }) => <option key={name} value={name}>{name}</option>)}
      </SelectField>
      {chosen !== undefined && chosen.environment.length > 0 && (
        <FieldSet label={mcp.variables} hint={mcp.variablesHint} fault={errors.stdio?.environment?.root?.message}>
          {chosen.environment.map((name) => (
            <TextField
              key={name} label={name} type="password" autoComplete="new-password" fault={errors.stdio?.environment?.[name]?.message}
              {...register(`stdio.environment.${name}`)}
            />
          ))}
        </FieldSet>
      )}
    </>
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

function OAuthFields({ form }: { form: UseFormReturn<ServerFields> }) {
  const mcp = mcpTexts;
  const fault = form.formState.errors.oauth;
  return (
    <FieldSet label={mcp.credentials.oauth} fault={fault?.message}>
      <TextField label={mcp.tokenUrl} type="url" autoComplete="off" spellCheck={false} fault={fault?.token_url?.message} {...form.register("oauth.token_url", { required: mcp.required })} />
      <ClientFields form={form} client="oauth" />
    </FieldSet>
  );
}

/** The client that acts for each user. The endpoints are those of the issuer, unless they are entered. */
function UserOAuthFields({ form, name }: { form: UseFormReturn<ServerFields>; name: string }) {
  const mcp = mcpTexts;
  const { register, formState } = form;
  const fault = formState.errors.user_oauth;
  const address = { type: "url", autoComplete: "off", spellCheck: false } as const;
  return (
    <FieldSet label={mcp.credentials.user_oauth} hint={mcp.redirectHint(`${location.origin}/connect/${name}/callback`)} fault={fault?.message}>
      <TextField label={mcp.issuer} hint={mcp.issuerHint} {...address} fault={fault?.issuer?.message} {...register("user_oauth.issuer")} />
      <ClientFields form={form} client="user_oauth" />
      <TextField label={mcp.authorizationUrl} hint={mcp.endpointHint} {...address} fault={fault?.authorization_url?.message} {...register("user_oauth.authorization_url")} />
      <TextField label={mcp.tokenUrl} hint={mcp.endpointHint} {...address} fault={fault?.token_url?.message} {...register("user_oauth.token_url")} />
      <TextField label={mcp.revocationUrl} hint={mcp.endpointHint} {...address} fault={fault?.revocation_url?.message} {...register("user_oauth.revocation_url")} />
    </FieldSet>
  );
}

/** The fields that both kinds of clients have. A client that acts for users may be public, without a secret. */
function ClientFields({ form: { register, formState: { errors } }, client }: { form: UseFormReturn<ServerFields>; client: "oauth" | "user_oauth" }) {
  const mcp = mcpTexts;
  const fault = errors[client];
  const isPublicAllowed = client === "user_oauth";
  return (
    <>
      <TextField label={mcp.clientId} autoComplete="off" spellCheck={false} fault={fault?.client_id?.message} {...register(`${client}.client_id`, { required: mcp.required })} />
      <TextField
        label={mcp.clientSecret} hint={isPublicAllowed ? mcp.publicClientHint : mcp.headerHint} type="password" autoComplete="new-password"
        fault={fault?.client_secret?.message} {...register(`${client}.client_secret`, isPublicAllowed ? {} : { required: mcp.required })}
      />
      <TextField label={mcp.scope} hint={mcp.scopeHint} autoComplete="off" spellCheck={false} fault={fault?.scope?.message} {...register(`${client}.scope`)} />
      <SelectField label={mcp.clientAuthentication} {...register(`${client}.client_authentication`)}>
        <option value="client_secret_basic">client_secret_basic</option>
        <option value="client_secret_post">client_secret_post</option>
      </SelectField>
      <CheckboxField label={mcp.sendsResource} hint={mcp.sendsResourceHint} {...register(`${client}.sends_resource`)} />
    </>
  );
}
