import { type RefObject, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Secret } from "../parts/Secret";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { nameOf, useCreateUser } from "./api";
import { bodyOf, type UserFields, UserForm } from "./UserForm";

/** Creates a user, and then shows the invitation link once. */
export function CreateUserDialog({ open, onClose, returnTo }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}) {
  const [link, setLink] = useState<string | null>(null);
  const create = useCreateUser();
  const close = () => {
    onClose();
    setLink(null);
  };
  async function submit(fields: UserFields) {
    const created = await create.mutateAsync({ ...bodyOf(fields), kind: fields.kind });
    if (created.invitation_token === null) {
      toast(texts.users.created(nameOf(created)));
      close();
    } else {
      setLink(invitationLink(created.invitation_token, fields.email));
    }
  }
  return (
    <Dialog
      open={open} onClose={close} returnTo={returnTo} persistent={link !== null}
      title={link === null ? texts.users.newTitle : texts.users.invitedTitle}
      text={link === null ? texts.users.newText : texts.users.invitedText}
    >
      {link === null ? <UserForm onSubmit={submit} onCancel={close} /> : <Link label={texts.users.invitation} link={link} onDone={close} />}
    </Dialog>
  );
}

/** A one-time link that an administrator hands over. */
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
