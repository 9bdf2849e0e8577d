import { Ban, CircleCheck, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { useRights, useSession } from "../api/queries";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { MenuItem } from "../parts/Menu";
import { RowMenu } from "../parts/RowMenu";
import { errorText } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type ApiKey, useDeleteKey, useSetEnabled } from "./api";

/** The menu of a key: disable or enable it, delete it. Only its owner and administrators have one. */
export function KeyActions({ apiKey }: { apiKey: ApiKey }) {
  const { administers } = useRights();
  const { user } = useSession();
  const [deleting, setDeleting] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const setEnabled = useSetEnabled();
  const remove = useDeleteKey();
  const { id, description, is_enabled: enabled, user_id: owner = user.id } = apiKey;
  if (owner !== user.id && !administers) return null;

  function toggle() {
    setEnabled.mutate({ id, enabled: !enabled }, {
      onSuccess: () => toast(enabled ? texts.keys.disabled(description) : texts.keys.enabled(description)),
      onError: (error) => toast(errorText(error), "failed"),
    });
  }

  return (
    <>
      <RowMenu label={texts.keys.actionsOf(description)} trigger={trigger}>
        <MenuItem onClick={toggle}>
          {enabled ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
          {enabled ? texts.keys.disable : texts.keys.enable}
        </MenuItem>
        <MenuItem danger onClick={() => setDeleting(true)}>
          <Trash2 aria-hidden size={15} />
          {texts.keys.remove}
        </MenuItem>
      </RowMenu>
      <ConfirmDialog
        open={deleting} onClose={() => setDeleting(false)} returnTo={trigger} title={texts.keys.deleteTitle(description)}
        text={texts.keys.deleteText} action={texts.keys.delete} run={() => remove.mutateAsync(id)}
        done={texts.keys.deleted(description)}
      />
    </>
  );
}
