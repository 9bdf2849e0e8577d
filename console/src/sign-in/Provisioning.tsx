import { Plus, Trash2 } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { useRights } from "../api/queries";
import { Addresses } from "../parts/Addresses";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Dialog, DialogActions } from "../parts/Dialog";
import { DialogForm } from "../parts/DialogForm";
import { SelectField, TextField } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { Panel } from "../parts/Page";
import { RowMenu } from "../parts/RowMenu";
import { Secret } from "../parts/Secret";
import { ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { signInTexts } from "../texts/sign-in";
import { type ScimToken, useCreateScimToken, useDeleteScimToken, useScimTokens } from "./api";
import styles from "./SignInPage.module.css";

const DAY_MS = 86_400_000;

/** The SCIM address, and the tokens with which directories make and remove users. */
export function Provisioning() {
  const signIn = signInTexts;
  const { administers } = useRights();
  const { data, error, refetch } = useScimTokens();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  return (
    <Panel title={signIn.provisioning} actions={administers && <NewToken />}>
      <Addresses copyLabel={signIn.copyOf} rows={[{ name: signIn.scimUrl, value: `${location.origin}/api/scim/v2` }]} />
      {error && data === undefined ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data?.length === 0 ? (
        <p className={styles["text"]}>{signIn.noTokens}</p>
      ) : (
        <DataTable label={signIn.tokens} columns={columns} rows={data} rowId={(token) => token.token_id} />
      )}
    </Panel>
  );
}

function columnsOf(administers: boolean): Column<ScimToken>[] {
  const keys = keyTexts;
  const signIn = signInTexts;
  const columns: Column<ScimToken>[] = [
    { id: "name", header: signIn.token, meta: { width: "40%" }, cell: ({ row }) => <span className={styles["name"]}>{row.original.description}</span> },
    { id: "created", header: keys.created, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
    { id: "lastUsed", header: keys.lastUsed, cell: ({ row }) => <Moment at={row.original.last_used_at} /> },
    { id: "expires", header: keys.expires, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Moment at={row.original.expires_at} /> },
  ];
  if (administers) columns.push(actionsColumn((token) => <Actions token={token} />));
  return columns;
}

function Moment({ at }: { at: string | null }) {
  return at === null ? keyTexts.never : <Time at={at} as="relative" />;
}

function Actions({ token }: { token: ScimToken }) {
  const { rules } = texts;
  const signIn = signInTexts;
  const [deleting, setDeleting] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const remove = useDeleteScimToken(token.token_id);
  return (
    <>
      <RowMenu label={rules.actionsOf(token.description)} trigger={trigger}>
        <MenuItem danger onClick={() => setDeleting(true)}><Trash2 aria-hidden size={15} />{signIn.revoke}</MenuItem>
      </RowMenu>
      <ConfirmDialog
        open={deleting} onClose={() => setDeleting(false)} returnTo={trigger} title={signIn.revokeTitle(token.description)} text={signIn.revokeText}
        action={signIn.revokeNow} run={() => remove.mutateAsync(undefined)} done={signIn.revoked(token.description)}
      />
    </>
  );
}

function NewToken() {
  const signIn = signInTexts;
  const [open, setOpen] = useState(false);
  const [token, setToken] = useResetOnOpen<string | null>(open, null);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} size="small" onClick={() => setOpen(true)}><Plus aria-hidden />{signIn.newToken}</Button>
      <Dialog
        open={open} onClose={close} returnTo={trigger} persistent={token !== null}
        title={token === null ? signIn.newTokenTitle : signIn.tokenCreatedTitle} text={token === null ? signIn.newTokenText : signIn.tokenCreatedText}
      >
        {token === null ? (
          <TokenForm onCreated={setToken} onCancel={close} />
        ) : (
          <>
            <Secret label={signIn.token} text={token} />
            <DialogActions><Button look="primary" onClick={close}>{texts.done}</Button></DialogActions>
          </>
        )}
      </Dialog>
    </>
  );
}

function TokenForm({ onCreated, onCancel }: { onCreated: (token: string) => void; onCancel: () => void }) {
  const { rules } = texts;
  const keys = keyTexts;
  const signIn = signInTexts;
  const form = useForm({ defaultValues: { description: "", expires_at: "" } });
  const create = useCreateScimToken();
  const { errors } = form.formState;
  return (
    <DialogForm
      form={form} action={rules.create} onCancel={onCancel}
      onSubmit={async ({ description, expires_at: days }) => {
        const expiry = days === "" ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString();
        onCreated((await create.mutateAsync({ description, expires_at: expiry })).token);
      }}
    >
      <TextField
        label={signIn.directory} hint={signIn.directoryHint} autoFocus autoComplete="off" maxLength={255} fault={errors.description?.message}
        {...form.register("description", { required: signIn.required })}
      />
      <SelectField label={keys.expiry} fault={errors.expires_at?.message} {...form.register("expires_at")}>
        {["", "90", "365"].map((days) => <option key={days} value={days}>{keys.expiries[days]}</option>)}
      </SelectField>
    </DialogForm>
  );
}
