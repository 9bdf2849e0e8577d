import type { RefObject } from "react";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { toast } from "../parts/toasts";
import { useResetOnOpen } from "../parts/useResetOnOpen";
import { texts } from "../texts";
import { userTexts } from "../texts/users";
import { nameOf, useCreateUser } from "./api";
import { bodyOf, type UserFields, UserForm } from "./UserForm";

/** Creates a user. If the platform has not mailed the invitation link, shows it once. */
export function CreateUserDialog({ open, onClose, returnTo }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}) {
  const [link, setLink] = useResetOnOpen<string | null>(open, null);
  const create = useCreateUser();
  async function submit(fields: UserFields) {
    const created = await create.mutateAsync({ ...bodyOf(fields), kind: fields.kind });
    if (created.invitation_token === null) {
      toast(created.invitation_sent_to === null ? userTexts.created(nameOf(created)) : userTexts.invitationSent(created.invitation_sent_to));
      onClose();
    } else {
      setLink(invitationLink(created.invitation_token, fields.email));
    }
  }
  return (
    <Dialog
      open={open} onClose={onClose} returnTo={returnTo} persistent={link !== null}
      title={link === null ? userTexts.newTitle : userTexts.invitedTitle}
      text={link === null ? userTexts.newText : userTexts.invitedText}
    >
      {link === null ? <UserForm onSubmit={submit} onCancel={onClose} /> : <Link label={userTexts.invitation} link={link} onDone={onClose} />}
    </Dialog>
  );
}

/** A one-time link that the administrator gives to the user. */
export function Link({ label, link, onDone }: { label: string; link: string; onDone: () => void }) {
  return (
    <>
      <Secret label={label} text={link} />
      <DialogActions><Button look="primary" onClick={onDone}>{texts.done}</Button></DialogActions>
    </>
  );
}

function invitationLink(token: string, email: string): string {
  return `${location.origin}/login/invitation?${new URLSearchParams({ token, email: email.trim() }).toString()}`;
}
