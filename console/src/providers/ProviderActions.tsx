import { Activity, Ban, CircleCheck, KeyRound, KeySquare, List as Keys, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useIfMatch } from "../api/versions";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { duration } from "../parts/format";
import { MenuItem } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { credentialTexts } from "../texts/credentials";
import { providerTexts } from "../texts/providers";
import { type Provider, useCheckHealth, useDeleteProvider, useRemoveCredentials, useSetCredentials, useSetProviderEnabled } from "./api";
import { CredentialsDialog } from "./CredentialsDialog";
import { CredentialsForm } from "./CredentialsForm";

/** The menu of a provider, for administrators. */
export function ProviderActions({ provider }: { provider: Provider }) {
  const providers = providerTexts;
  const { id, name, enabled } = provider;
  const [open, setOpen] = useState<"credentials" | "list" | "removeCredentials" | "delete" | null>(null);
  const trigger = useRef<HTMLButtonElement>(null);
  const check = useCheckHealth(id);
  const setEnabled = useSetProviderEnabled(id);
  const removeCredentials = useRemoveCredentials(id);
  const remove = useDeleteProvider(id);
  const close = () => setOpen(null);
  const hasCredentials = provider.kind !== "sandbox" && provider.kind !== "byoe";
  const severalCredentials = provider.kind !== "sandbox" && provider.kind !== "ollama" && provider.config.use_instance_role !== true;
  const needsCredentials = hasCredentials && provider.kind !== "openai_compatible" && provider.kind !== "ollama";

  function checkNow() {
    report(check.mutateAsync(), ({ health_check_status: status, response_time_ms: time, error }) => {
        const isGood = status === "healthy";
        toast(isGood ? providers.isHealthy(name, duration(time)) : providers.isNotHealthy(name, error ?? texts.overview.healthOf(status)), isGood ? "done" : "failed");
      });
  }

  function toggle() {
    report(setEnabled.mutateAsync(!enabled), () => toast(enabled ? providers.wasDisabled(name) : providers.wasEnabled(name)));
  }

  return (
    <>
      <RowMenu label={providers.actionsOf(name)} trigger={trigger}>
        <MenuItem onClick={checkNow}><Activity aria-hidden size={15} />{providers.check}</MenuItem>
        {hasCredentials && <MenuItem onClick={() => setOpen("credentials")}><KeyRound aria-hidden size={15} />{providers.credentials}</MenuItem>}
        {severalCredentials && <MenuItem onClick={() => setOpen("list")}><Keys aria-hidden size={15} />{credentialTexts.menu}</MenuItem>}
        <MenuItem onClick={toggle}>
          {enabled ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
          {enabled ? providers.disable : providers.enable}
        </MenuItem>
        {needsCredentials && provider.credentials_configured && (
          <MenuItem danger onClick={() => setOpen("removeCredentials")}><KeySquare aria-hidden size={15} />{providers.removeCredentials}</MenuItem>
        )}
        <MenuItem danger onClick={() => setOpen("delete")}><Trash2 aria-hidden size={15} />{providers.remove}</MenuItem>
      </RowMenu>
      <Dialog open={open === "credentials"} onClose={close} returnTo={trigger} title={providers.credentialsTitle(name)} text={providers.credentialsText}>
        <ReplacedCredentialsForm provider={provider} onDone={close} />
      </Dialog>
      <CredentialsDialog provider={provider} open={open === "list"} onClose={close} returnTo={trigger} />
      <ConfirmDialog
        open={open === "removeCredentials"} onClose={close} returnTo={trigger} title={providers.removeTitle(name)} text={providers.removeText}
        action={providers.removeNow} run={() => removeCredentials.mutateAsync(undefined)} done={providers.removed(name)}
      />
      <ConfirmDialog
        open={open === "delete"} onClose={close} returnTo={trigger} title={providers.deleteTitle(name)} text={providers.deleteText}
        action={providers.deleteNow} run={() => remove.mutateAsync(undefined)} done={providers.deleted(name)}
      />
    </>
  );
}

function ReplacedCredentialsForm({ provider, onDone }: { provider: Provider; onDone: () => void }) {
  const setCredentials = useSetCredentials();
  const header = useIfMatch(provider);
  return (
    <CredentialsForm
      provider={provider} onCancel={onDone}
      onSubmit={async (id, credentials) => {
        await setCredentials.mutateAsync({ id, credentials, header });
        toast(providerTexts.credentialsSaved(provider.name));
        onDone();
      }}
    />
  );
}
