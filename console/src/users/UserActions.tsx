import { Ban, CircleCheck, KeyRound, MonitorSmartphone, Pencil, ShieldOff, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useSession } from "../api/queries";
import { CheckboxField } from "../parts/fields";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { MenuItem, MenuSeparator } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { userTexts } from "../texts/users";
import { nameOf, type User, useDeleteUser, useIssueReset, useResetFactors, useSetActive, useUpdateUser } from "./api";
import { Link } from "./CreateUserDialog";
import { bodyOf, UserForm } from "./UserForm";

type Open = "edit" | "reset" | "factors" | "delete" | null;

/** The menu of a user, for administrators. */
export function UserActions({ user, onOpen }: { user: User; onOpen: () => void }) {
  const users = userTexts;
  const { user: self } = useSession();
  const [open, setOpen] = useState<Open>(null);
  const [link, setLink] = useState<string | null>(null);
  const [anonymise, setAnonymise] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const setActive = useSetActive(user.id);
  const remove = useDeleteUser(user.id);
  const issueReset = useIssueReset(user.id);
  const resetFactors = useResetFactors(user.id);
  const name = nameOf(user);
  const close = () => setOpen(null);

  function toggle() {
    report(setActive.mutateAsync(!user.is_active), () => toast(user.is_active ? users.deactivated(name) : users.activated(name)));
  }

  function showReset() {
    report(issueReset.mutateAsync(), ({ token, sent_to }) => {
        if (token === null) {
          toast(users.resetSent(sent_to ?? name));
          return;
        }
        setLink(`${location.origin}/login/reset?token=${encodeURIComponent(token)}`);
        setOpen("reset");
      });
  }

  return (
    <>
      <RowMenu label={users.actionsOf(name)} trigger={trigger}>
        <MenuItem onClick={onOpen}>
          {user.kind === "service" ? <KeyRound aria-hidden size={15} /> : <MonitorSmartphone aria-hidden size={15} />}
          {user.kind === "service" ? users.keys : users.sessions}
        </MenuItem>
        <MenuItem onClick={() => setOpen("edit")}><Pencil aria-hidden size={15} />{users.edit}</MenuItem>
        {user.kind === "user" && (
          <>
            <MenuItem onClick={showReset}><KeyRound aria-hidden size={15} />{users.resetPassword}</MenuItem>
            <MenuItem onClick={() => setOpen("factors")}><ShieldOff aria-hidden size={15} />{users.resetFactors}</MenuItem>
          </>
        )}
        {user.id !== self.id && (
          <>
            <MenuSeparator />
            <MenuItem onClick={toggle}>
              {user.is_active ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
              {user.is_active ? users.deactivate : users.activate}
            </MenuItem>
            <MenuItem danger onClick={() => setOpen("delete")}><Trash2 aria-hidden size={15} />{users.remove}</MenuItem>
          </>
        )}
      </RowMenu>
      <Dialog open={open === "edit"} onClose={close} returnTo={trigger} title={users.editTitle(name)}>
        <EditUser user={user} onDone={close} />
      </Dialog>
      <Dialog open={open === "reset"} onClose={close} returnTo={trigger} persistent title={users.resetTitle(name)} text={users.resetText}>
        <Link label={users.resetLink} link={link ?? ""} onDone={close} />
      </Dialog>
      <ConfirmDialog
        open={open === "factors"} onClose={close} returnTo={trigger} title={users.factorsTitle(name)} text={users.factorsText}
        action={users.resetFactorsNow} run={() => resetFactors.mutateAsync(undefined)} done={users.factorsReset(name)}
      />
      <ConfirmDialog
        open={open === "delete"} onClose={close} returnTo={trigger} title={users.deleteTitle(name)} text={users.deleteText}
        action={users.delete} run={() => remove.mutateAsync(anonymise)} done={users.deleted(name)}
      >
        <CheckboxField
          label={users.anonymise} hint={users.anonymiseHint} checked={anonymise}
          onChange={({ target }) => setAnonymise(target.checked)}
        />
      </ConfirmDialog>
    </>
  );
}

function EditUser({ user, onDone }: { user: User; onDone: () => void }) {
  const update = useUpdateUser(user);
  return (
    <UserForm
      user={user} onCancel={onDone}
      onSubmit={async (fields) => {
        await update.mutateAsync(bodyOf(fields));
        toast(userTexts.saved(nameOf(user)));
        onDone();
      }}
    />
  );
}
