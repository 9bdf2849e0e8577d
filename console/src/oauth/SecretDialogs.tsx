import { Plus } from "lucide-react";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useConfigurationEntry } from "../api/configuration";
import { Addresses } from "../parts/Addresses";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField } from "../parts/fields";
import { Secret } from "../parts/Secret";
import { Time } from "../parts/Time";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { oauthTexts } from "../texts/oauth";
import { signInTexts } from "../texts/sign-in";
import { type CreatedClient, type OAuthClient, type RotatedSecret, useCreateClient, useRotateSecret } from "./api";
import { bodyOf, ClientForm } from "./ClientForm";
import styles from "./ClientForm.module.css";

/** The number of seconds for which the previous secret stays valid. An empty value means the setting of the
 * installation. */
const GRACE_PERIODS = ["", "0", "3600", "86400", "604800"] as const;

/** Creates a client, and then shows its id and its secret once. */
export function CreateClient() {
  const oauth = oauthTexts;
  const [open, setOpen] = useState(false);
  const [created, setCreated] = useResetOnOpen<CreatedClient | null>(open, null);
  const trigger = useRef<HTMLButtonElement>(null);
  const create = useCreateClient();
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} look="primary" onClick={() => setOpen(true)}><Plus aria-hidden />{oauth.new}</Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} persistent={created !== null} wide
        title={created === null ? oauth.newTitle : oauth.secretTitle} text={created === null ? oauth.newText : oauth.secretText}
      >
        {created === null ? (
          <ClientForm
            onCancel={close}
            onSubmit={async (fields) =>
              setCreated(await create.mutateAsync({ ...bodyOf(fields), ...(fields.platform_wide && { tenant_id: null }) }))}
          />
        ) : (
          <ShownSecret clientId={created.client_id} secret={created.client_secret} isMachine={created.scopes.length > 0} onDone={close} />
        )}
      </Dialog>
    </>
  );
}

/** Makes a new secret, and shows it once. */
export function RotateDialog({ client, open, onClose }: { client: OAuthClient; open: boolean; onClose: () => void }) {
  const oauth = oauthTexts;
  const [rotated, setRotated] = useResetOnOpen<RotatedSecret | null>(open, null);
  return (
    <Dialog
      open={open} onClose={onClose} persistent={rotated !== null} wide={rotated !== null}
      title={rotated === null ? oauth.rotateTitle(client.name) : oauth.secretTitle}
      text={rotated === null ? oauth.rotateText : <Rotated secret={rotated} />}
    >
      {rotated === null ? (
        <RotateForm client={client} onRotated={setRotated} onCancel={onClose} />
      ) : (
        <ShownSecret clientId={client.client_id} secret={rotated.new_client_secret} isMachine={client.scopes.length > 0} onDone={onClose} />
      )}
    </Dialog>
  );
}

function RotateForm({ client, onRotated, onCancel }: { client: OAuthClient; onRotated: (secret: RotatedSecret) => void; onCancel: () => void }) {
  const oauth = oauthTexts;
  const form = useForm({ defaultValues: { grace_period_seconds: "" } });
  const rotate = useRotateSecret(client);
  const { data: usual } = useConfigurationEntry("oauth_secret_grace_seconds");
  return (
    <DialogForm
      form={form} action={oauth.rotateNow} onCancel={onCancel}
      onSubmit={async ({ grace_period_seconds: seconds }) =>
        onRotated(await rotate.mutateAsync({ grace_period_seconds: seconds === "" ? null : Number(seconds) }))}
    >
      <SelectField
        label={oauth.grace} source={form.watch("grace_period_seconds") === "" ? usual?.source : undefined}
        fault={form.formState.errors.grace_period_seconds?.message} {...form.register("grace_period_seconds")}
      >
        {GRACE_PERIODS.map((seconds) => (
          <option key={seconds} value={seconds}>
            {seconds === "" && usual !== undefined ? oauth.graceOfInstallation(Number(usual.value)) : oauth.graces[seconds]}
          </option>
        ))}
      </SelectField>
    </DialogForm>
  );
}

function Rotated({ secret }: { secret: RotatedSecret }) {
  const oauth = oauthTexts;
  if (secret.grace_period_seconds === 0) return oauth.rotatedAtOnce;
  return <>{oauth.rotatedUntil} <Time at={secret.previous_secret_expires_at} />.</>;
}

function ShownSecret({ clientId, secret, isMachine, onDone }: { clientId: string; secret: string; isMachine: boolean; onDone: () => void }) {
  const oauth = oauthTexts;
  const signIn = signInTexts;
  const code = `curl ${location.origin}/oauth/token \\\n  -u "${clientId}:${secret}" \\\n  -d grant_type=client_credentials`;
  return (
    <div className={styles["shown"]}>
      <div className={styles["ids"]}><Addresses copyLabel={signIn.copyOf} rows={[{ name: oauth.clientId, value: clientId }]} /></div>
      <Secret label={oauth.secret} text={secret} />
      {isMachine && <CodeTabs label={oauth.getToken} programs={[{ name: oauth.getToken, code }]} />}
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </div>
  );
}
