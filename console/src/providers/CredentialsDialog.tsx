import { Plus } from "lucide-react";
import { type RefObject, useState } from "react";
import { useForm } from "react-hook-form";
import { Badge, type Tone } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { credentialTexts } from "../texts/credentials";
import { providerTexts } from "../texts/providers";
import { type CredentialField, type Provider, SECRETS, type Way } from "./api";
import styles from "./CredentialsDialog.module.css";
import {
  type Credential, type CredentialState, isOptionalSecret, type Secret, secretFieldsOf, STATES, useAddCredential, useCredentials,
  useRemoveCredential, useRotateCredential, useSetCredentialState, waysOf,
} from "./credentials";

/** What the dialog shows: the list, or the form for a new credential, for a new secret, or for a new state. */
type View = { name: "list" | "add" } | { name: "rotate" | "state"; credential: Credential };

const LIST: View = { name: "list" };
const TONES: Record<CredentialState, Tone> = { active: "success", draining: "warning", disabled: "neutral" };
const LABEL = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** The credentials of a provider, for administrators. */
export function CredentialsDialog({ provider, open, onClose, returnTo }: {
  provider: Provider;
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}) {
  const [view, setView] = useState(LIST);
  // If the dialog was closed and opened again during a change, the end of the change does not close another form.
  const toList = () => setView((now) => (now === view ? LIST : now));
  const close = () => {
    setView(LIST);
    onClose();
  };
  return (
    <Dialog open={open} onClose={close} returnTo={returnTo} title={credentialTexts.title(provider.name)} text={textOf(view)}>
      {open && (
        <>
          {view.name === "list" && <CredentialList provider={provider} onView={setView} />}
          {view.name === "add" && <SecretForm provider={provider} onDone={toList} />}
          {view.name === "rotate" && <SecretForm provider={provider} credential={view.credential} onDone={toList} />}
          {view.name === "state" && <StateForm providerId={provider.id} credential={view.credential} onDone={toList} />}
        </>
      )}
    </Dialog>
  );
}

function textOf(view: View): string {
  switch (view.name) {
    case "rotate": return credentialTexts.rotateText(view.credential.label);
    case "state": return credentialTexts.stateText(view.credential.label);
    default: return credentialTexts.text;
  }
}

function CredentialList({ provider, onView }: { provider: Provider; onView: (view: View) => void }) {
  const { data, error, refetch } = useCredentials(provider.id);
  const [removed, setRemoved] = useState<Credential | null>(null);
  const remove = useRemoveCredential(provider.id);
  const removedLabel = removed?.label ?? "";
  if (error !== null && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <div role="status" aria-label={texts.loading}><Skeleton width="60%" /></div>;
  return (
    <>
      {data.length === 0 ? <p>{credentialTexts.none}</p> : (
        <ul className={styles["list"]} aria-label={credentialTexts.list}>
          {data.map((credential) => (
            <Entry
              key={credential.label} credential={credential} onRemove={() => setRemoved(credential)}
              onState={() => onView({ name: "state", credential })} onRotate={() => onView({ name: "rotate", credential })}
            />
          ))}
        </ul>
      )}
      <p className={styles["hint"]}>{credentialTexts.stateHint}</p>
      <Button size="small" onClick={() => onView({ name: "add" })}><Plus aria-hidden />{credentialTexts.add}</Button>
      <ConfirmDialog
        open={removed !== null} onClose={() => setRemoved(null)} title={credentialTexts.removeOf(removedLabel)} text={credentialTexts.removeText(removedLabel)}
        action={credentialTexts.removeNow} run={async () => removed !== null && remove.mutateAsync(removed)} done={credentialTexts.removed(removedLabel)}
      />
    </>
  );
}

function Entry({ credential: { label, state, rotated_at: rotatedAt }, onState, onRotate, onRemove }: {
  credential: Credential;
  onState: () => void;
  onRotate: () => void;
  onRemove: () => void;
}) {
  return (
    <li className={styles["entry"]}>
      <span className={styles["label"]}>
        <code className={styles["name"]}>{label}</code>
        {rotatedAt !== null && <span className={styles["muted"]}>{credentialTexts.rotatedAt} <Time at={rotatedAt} as="relative" /></span>}
      </span>
      <Badge tone={TONES[state]}>{credentialTexts.states[state]}</Badge>
      <Button size="small" aria-label={credentialTexts.changeStateOf(label)} onClick={onState}>{credentialTexts.changeState}</Button>
      <Button size="small" aria-label={credentialTexts.rotateOf(label)} onClick={onRotate}>{credentialTexts.rotate}</Button>
      <Button size="small" look="quiet" aria-label={credentialTexts.removeOf(label)} onClick={onRemove}>{credentialTexts.remove}</Button>
    </li>
  );
}

function StateForm({ providerId, credential, onDone }: { providerId: string; credential: Credential; onDone: () => void }) {
  const form = useForm({ defaultValues: { state: credential.state } });
  const setState = useSetCredentialState(providerId);
  return (
    <DialogForm
      form={form} action={credentialTexts.stateNow} onCancel={onDone}
      onSubmit={async ({ state }) => {
        await setState.mutateAsync({ credential, state });
        toast(credentialTexts.changed(credential.label, credentialTexts.states[state]));
        onDone();
      }}
    >
      <SelectField label={credentialTexts.state} hint={credentialTexts.stateHint} autoFocus fault={form.formState.errors.state?.message} {...form.register("state")}>
        {STATES.map((name) => <option key={name} value={name}>{credentialTexts.states[name]}</option>)}
      </SelectField>
    </DialogForm>
  );
}

type Fields = Record<CredentialField, string> & { label: string; way: Way | undefined };

/** Adds a credential, or replaces the secret of `credential`. */
function SecretForm({ provider, credential, onDone }: { provider: Provider; credential?: Credential; onDone: () => void }) {
  const providers = providerTexts;
  const ways = waysOf(provider);
  const form = useForm<Fields>({
    defaultValues: {
      label: "", way: ways[0], api_key: "", cloud_access_key_id: "", cloud_secret_access_key: "", cloud_session_token: "",
      service_account_key: "", entra_client_secret: "",
    },
  });
  const names = secretFieldsOf(provider.kind, form.watch("way"));
  const { errors } = form.formState;
  const add = useAddCredential(provider.id);
  const rotate = useRotateCredential(provider.id);
  async function submit(fields: Fields) {
    const filled = names.filter((name) => fields[name].trim() !== "");
    const secret: Secret = Object.fromEntries(filled.map((name) => [name, fields[name].trim()]));
    if (credential === undefined) {
      await add.mutateAsync({ ...secret, label: fields.label.trim(), state: "active" });
      toast(credentialTexts.added(fields.label.trim()));
    } else {
      await rotate.mutateAsync({ credential, secret });
      toast(credentialTexts.rotated(credential.label));
    }
    onDone();
  }
  return (
    <DialogForm form={form} action={credential === undefined ? credentialTexts.addNow : credentialTexts.rotateNow} onSubmit={submit} onCancel={onDone}>
      {credential === undefined && (
        <TextField
          label={credentialTexts.label} hint={credentialTexts.labelHint} autoFocus autoComplete="off" spellCheck={false} autoCapitalize="none" fault={errors.label?.message}
          {...form.register("label", { required: credentialTexts.labelRequired, pattern: { value: LABEL, message: credentialTexts.labelRequired } })}
        />
      )}
      {ways.length > 1 && (
        <SelectField label={providers.way} fault={errors.way?.message} {...form.register("way")}>
          {ways.map((name) => <option key={name} value={name}>{providers.ways[name]}</option>)}
        </SelectField>
      )}
      {names.map((name, at) => (
        <TextField
          key={name} label={providers.fields[name]} hint={providers.fieldHints[name]} type={SECRETS.includes(name) ? "password" : "text"}
          autoComplete="off" spellCheck={false} autoFocus={credential !== undefined && at === 0} fault={errors[name]?.message}
          {...form.register(name, isOptionalSecret(provider.kind, name) ? {} : { required: providers.required })}
        />
      ))}
    </DialogForm>
  );
}
