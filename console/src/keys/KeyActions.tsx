import { Menu } from "@base-ui/react/menu";
import { Ban, CircleCheck, MoreHorizontal, Trash2 } from "lucide-react";
import { type RefObject, useRef, useState } from "react";
import { useRights, useSession } from "../api/queries";
import { Button, buttonClass } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { MenuItem, MenuPopup } from "../parts/Menu";
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
      <Menu.Root>
        <Menu.Trigger ref={trigger} className={buttonClass("quiet", "icon")} aria-label={texts.keys.actionsOf(description)}>
          <MoreHorizontal aria-hidden />
        </Menu.Trigger>
        <MenuPopup within="content">
          <MenuItem onClick={toggle}>
            {enabled ? <Ban aria-hidden size={15} /> : <CircleCheck aria-hidden size={15} />}
            {enabled ? texts.keys.disable : texts.keys.enable}
          </MenuItem>
          <MenuItem danger onClick={() => setDeleting(true)}>
            <Trash2 aria-hidden size={15} />
            {texts.keys.remove}
          </MenuItem>
        </MenuPopup>
      </Menu.Root>
      <DeleteDialog apiKey={apiKey} open={deleting} onClose={() => setDeleting(false)} returnTo={trigger} />
    </>
  );
}

function DeleteDialog({ apiKey, open, onClose, returnTo }: {
  apiKey: ApiKey;
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
}) {
  const remove = useDeleteKey();
  return (
    <Dialog open={open} onClose={onClose} title={texts.keys.deleteTitle(apiKey.description)} text={texts.keys.deleteText} returnTo={returnTo}>
      <DialogActions>
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button
          look="danger"
          busy={remove.isPending}
          onClick={() =>
            remove.mutate(apiKey.id, {
              onSuccess: () => {
                onClose();
                toast(texts.keys.deleted(apiKey.description));
              },
              onError: (error) => toast(errorText(error), "failed"),
            })}
        >
          {texts.keys.delete}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
