import type { ChangeEvent } from "react";
import { useForm } from "react-hook-form";
import { Button } from "../parts/Button";
import { DialogForm } from "../parts/DialogForm";
import hints from "../parts/fields.module.css";
import { SelectField, TextField } from "../parts/fields";
import { texts } from "../texts";
import { providerTexts } from "../texts/providers";
import {
  type CredentialField, type Credentials, fieldsOf, type Kind, KINDS, OPTIONAL, type Preset, type Provider, SECRETS,
  usePresets, type Way, WAYS,
} from "./api";

/** `choice` is a kind, or the id of a preset after `preset:`. `way` is empty for the kind's default. */
type Fields = Record<CredentialField, string> & { choice: string; id: string; way: Way | "" };

const NONE_TAKEN: ReadonlySet<string> = new Set();
const PRESET = "preset:";

/** Adds a provider, or replaces the credentials of an existing one. The API never returns stored secrets, so the user
 * enters them again. `taken` contains the ids of existing providers. A new provider needs another id. */
export function CredentialsForm({ provider, taken = NONE_TAKEN, onSubmit, onCancel }: {
  provider?: Provider | undefined;
  taken?: ReadonlySet<string>;
  onSubmit: (id: string, credentials: Credentials) => Promise<unknown>;
  onCancel: () => void;
}) {
  const providers = providerTexts;
  const presets = usePresets(provider === undefined);
  const first = kindOf(provider?.kind);
  const form = useForm<Fields>({
    defaultValues: {
      choice: first, id: freeName(first, taken), way: provider?.config.entra_client_id == null ? "" : "application",
      api_key: "", hosted_api_version: "", cloud_secret_access_key: "", cloud_session_token: "", service_account_key: "",
      entra_client_secret: "",
      entra_tenant_id: provider?.config.entra_tenant_id ?? "",
      entra_client_id: provider?.config.entra_client_id ?? "",
      cloud_project: provider?.config.cloud_project ?? "",
      cloud_location: provider?.config.cloud_location ?? "",
      base_url: provider?.config.base_url ?? "",
      local_runtime_base_url: provider?.config.local_runtime_base_url ?? "",
      hosted_endpoint: provider?.config.hosted_endpoint ?? "",
      cloud_access_key_id: provider?.config.cloud_access_key_id ?? "",
      cloud_region: provider?.config.cloud_region ?? "",
    },
  });
  const { errors, dirtyFields } = form.formState;
  const choice = form.watch("choice");
  const presetOf = (value: string) => presets.data?.find(({ id }) => value === PRESET + id);
  const preset = presetOf(choice);
  const kind = preset === undefined ? kindOf(choice) : kindOf(preset.kind);
  const isNew = provider === undefined;
  const ways = Object.keys(WAYS[kind] ?? {}) as Way[];
  const chosenWay = form.watch("way");
  const way = ways.find((name) => name === chosenWay) ?? ways[0];
  const names = fieldsOf(kind, way);

  /** Fills in an id and an address, unless the user has entered them. */
  function prefill(chosen: string) {
    if (dirtyFields.id !== true) form.setValue("id", freeName(presetOf(chosen)?.id ?? kindOf(chosen), taken));
    if (dirtyFields.base_url !== true) form.setValue("base_url", presetOf(chosen)?.base_url ?? "");
  }

  function submit(fields: Fields) {
    const credentials: Credentials = Object.fromEntries(
      names.map((name) => [name, fields[name].trim()]).filter(([, value]) => value !== ""),
    );
    if (!isNew) return onSubmit(provider.id, credentials);
    const id = fields.id.trim();
    if (preset !== undefined) {
      return onSubmit(id, { ...credentials, preset: preset.id, name: id === preset.id ? preset.name : id });
    }
    return onSubmit(id, { ...credentials, ...(id !== kind && { kind }) });
  }

  return (
    <DialogForm form={form} action={isNew ? providers.add : providers.saveCredentials} onSubmit={submit} onCancel={onCancel}>
      {isNew && (
        <>
          <SelectField
            label={providers.kind} fault={errors.choice?.message}
            {...form.register("choice", { onChange: ({ target }: ChangeEvent<HTMLSelectElement>) => prefill(target.value) })}
          >
            <optgroup label={providers.kindsLabel}>
              {(Object.keys(KINDS) as Kind[]).map((name) => <option key={name} value={name}>{providers.kinds[name]}</option>)}
            </optgroup>
            {presets.data !== undefined && (
              <optgroup label={providers.presetsLabel}>
                {presets.data.map(({ id, name }) => <option key={id} value={PRESET + id}>{name}</option>)}
              </optgroup>
            )}
          </SelectField>
          {presets.error && presets.data === undefined && (
            <p className={hints["hint"]} role="alert">
              {providers.presetsFailed} <Button size="small" look="quiet" onClick={() => void presets.refetch()}>{texts.retry}</Button>
            </p>
          )}
          {preset !== undefined && <About preset={preset} />}
          <TextField
            label={providers.id} hint={providers.idHint} spellCheck={false} autoComplete="off" fault={errors.id?.message}
            {...form.register("id", {
              required: providers.required,
              validate: (id) => !taken.has(id.trim()) || providers.idTaken,
            })}
          />
        </>
      )}
      {ways.length > 1 && (
        <SelectField label={providers.way} fault={errors.way?.message} {...form.register("way")} value={way}>
          {ways.map((name) => <option key={name} value={name}>{providers.ways[name]}</option>)}
        </SelectField>
      )}
      {names.map((name) => (
        <TextField
          key={name} label={providers.fields[name]} autoComplete="off" spellCheck={false} fault={errors[name]?.message}
          type={SECRETS.includes(name) ? "password" : "text"} hint={providers.fieldHints[name]}
          {...form.register(name, isOptional(kind, name, preset) ? {} : { required: providers.required })}
        />
      ))}
    </DialogForm>
  );
}

function About({ preset }: { preset: Preset }) {
  return (
    <p className={hints["hint"]}>
      {preset.note} {preset.documentation_url !== null && (
        <a href={preset.documentation_url} target="_blank" rel="noreferrer">{providerTexts.documentationOf(preset.name)}</a>
      )}
    </p>
  );
}

function isOptional(kind: Kind, name: CredentialField, preset: Preset | undefined): boolean {
  if (name === "api_key" && preset?.key_required === true) return false;
  return OPTIONAL[kind]?.includes(name) === true;
}

/** Returns an unused id for a new provider: `name`, or `name` with a number if it is taken. Returns an empty text for
 * `openai_compatible`, because the user must name such a provider. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  if (name === "openai_compatible") return "";
  if (!taken.has(name)) return name;
  const slug = name.replaceAll("_", "-");
  for (let number = 2; ; number += 1) {
    if (!taken.has(`${slug}-${number}`)) return `${slug}-${number}`;
  }
}

function kindOf(name: string | undefined): Kind {
  if (name === undefined) return "openai";
  return name in KINDS ? (name as Kind) : "openai_compatible";
}
