import { useForm } from "react-hook-form";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { type CredentialField, type Credentials, type Kind, KINDS, OPTIONAL, type Provider, SECRETS } from "./api";

type Fields = Record<CredentialField, string> & { kind: Kind; id: string };

/** Sets up a provider, or replaces the credentials of one. Stored secrets are never shown, so they are entered anew. */
export function CredentialsForm({ provider, onSubmit, onCancel }: {
  provider?: Provider | undefined;
  onSubmit: (id: string, credentials: Credentials) => Promise<unknown>;
  onCancel: () => void;
}) {
  const { providers } = texts;
  const form = useForm<Fields>({
    defaultValues: {
      kind: kindOf(provider), id: "", api_key: "", hosted_api_version: "", cloud_secret_access_key: "",
      base_url: provider?.config.base_url ?? "",
      local_runtime_base_url: provider?.config.local_runtime_base_url ?? "",
      hosted_endpoint: provider?.config.hosted_endpoint ?? "",
      cloud_access_key_id: provider?.config.cloud_access_key_id ?? "",
      cloud_region: provider?.config.cloud_region ?? "",
    },
  });
  const { errors } = form.formState;
  const kind = form.watch("kind");

  function submit(fields: Fields) {
    const credentials = Object.fromEntries(
      KINDS[kind].map((name) => [name, fields[name].trim()]).filter(([, value]) => value !== ""),
    ) as Credentials;
    const id = provider?.id ?? (kind === "openai_compatible" ? fields.id.trim() : kind);
    return onSubmit(id, credentials);
  }

  return (
    <DialogForm form={form} action={provider === undefined ? providers.add : providers.saveCredentials} onSubmit={submit} onCancel={onCancel}>
      {provider === undefined && (
        <SelectField label={providers.kind} fault={errors.kind?.message} {...form.register("kind")}>
          {(Object.keys(KINDS) as Kind[]).map((each) => <option key={each} value={each}>{providers.kinds[each]}</option>)}
        </SelectField>
      )}
      {provider === undefined && kind === "openai_compatible" && (
        <TextField
          label={providers.id} hint={providers.idHint} spellCheck={false} autoComplete="off" fault={errors.id?.message}
          {...form.register("id", { required: providers.required })}
        />
      )}
      {KINDS[kind].map((name) => (
        <TextField
          key={name} label={providers.fields[name]} autoComplete="off" spellCheck={false} fault={errors[name]?.message}
          type={SECRETS.includes(name) ? "password" : "text"} hint={providers.fieldHints[name]}
          {...form.register(name, OPTIONAL[kind]?.includes(name) === true ? {} : { required: providers.required })}
        />
      ))}
    </DialogForm>
  );
}

function kindOf(provider: Provider | undefined): Kind {
  if (provider === undefined) return "openai";
  return provider.kind in KINDS ? (provider.kind as Kind) : "openai_compatible";
}
