import { Ban, CircleCheck, Pencil, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useRights, useSession } from "../api/queries";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { MenuItem } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { type ApiKey, useDeleteKey, useSetKeyEnabled, useUpdateKey } from "./api";
import { KeyForm } from "./KeyForm";

/** The menu of a key: edit, disable or enable, delete. It is shown only to the owner of the key and to administrators. */
export function KeyActions({ apiKey }: { apiKey: ApiKey }) {
  const { administers } = useRights();
  const { user } = useSession();
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const setEnabled = useSetKeyEnabled(apiKey.id);
  const remove = useDeleteKey();
  const { id, description, is_enabled: enabled, user_id: owner = user.id } = apiKey;
  if (owner !== user.id && !administers) return null;

  function toggle() {
    report(setEnabled.mutateAsync(!enabled), () => toast(enabled ? keyTexts.disabled(description) : keyTexts.enabled(description)));
  }

  return (
    <>
      <RowMenu label={keyTexts.actionsOf(description)} trigger={trigger}>
        <MenuItem onClick={() => setEditing(true)}>
          <Pencil aria-hidden size={15} />
          {texts.rules.edit}
        </MenuItem>
        <MenuItem onClick={toggle}>
          {enabled ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
          {enabled ? keyTexts.disable : keyTexts.enable}
        </MenuItem>
        <MenuItem danger onClick={() => setDeleting(true)}>
          <Trash2 aria-hidden size={15} />
          {keyTexts.remove}
        </MenuItem>
      </RowMenu>
      <Dialog open={editing} onClose={() => setEditing(false)} returnTo={trigger} title={keyTexts.editTitle(description)} text={keyTexts.editText}>
        <EditKey apiKey={apiKey} onDone={() => setEditing(false)} />
      </Dialog>
      <ConfirmDialog
        open={deleting} onClose={() => setDeleting(false)} returnTo={trigger} title={keyTexts.deleteTitle(description)}
        text={keyTexts.deleteText} action={keyTexts.delete} run={() => remove.mutateAsync(id)}
        done={keyTexts.deleted(description)}
      />
    </>
  );
}

function EditKey({ apiKey, onDone }: { apiKey: ApiKey; onDone: () => void }) {
  const update = useUpdateKey(apiKey);
  return (
    <KeyForm
      apiKey={apiKey} onCancel={onDone}
      onSubmit={async (body) => {
        await update.mutateAsync(body);
        toast(texts.rules.saved(body.description));
        onDone();
      }}
    />
  );
}
