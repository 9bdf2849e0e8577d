import type { RefObject } from "react";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/Copy";
import { Dialog, DialogActions } from "../parts/Dialog";
import { errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { chatTexts } from "../texts/chat";
import { useCreateLink, useRevokeLink, useShareLinks } from "./api";
import styles from "./ChatPage.module.css";

/** The dialog for the share links of a conversation: create, copy, revoke. */
export function ShareDialog({ open, onClose, returnTo, conversationId }: {
  open: boolean;
  onClose: () => void;
  returnTo: RefObject<HTMLElement | null>;
  conversationId: string;
}) {
  const chat = chatTexts;
  return (
    <Dialog open={open} onClose={onClose} returnTo={returnTo} title={chat.shareTitle} text={chat.shareText}>
      <Links conversationId={conversationId} />
    </Dialog>
  );
}

function Links({ conversationId }: { conversationId: string }) {
  const chat = chatTexts;
  const links = useShareLinks(conversationId);
  const create = useCreateLink(conversationId);
  const revoke = useRevokeLink(conversationId);
  const onError = (error: unknown) => toast(errorText(error), "failed");
  const valid = links.data?.filter(({ revoked }) => !revoked);
  return (
    <>
      {links.error && <p className={styles["fault"]} role="alert">{errorText(links.error)}</p>}
      {valid?.length === 0 && <p className={styles["none"]}>{chat.noLinks}</p>}
      <ul className={styles["links"]} aria-label={chat.links}>
        {valid?.map(({ id, url, created_at: created }) => (
          <li key={id} className={styles["link"]}>
            <a className={styles["address"]} href={url} target="_blank" rel="noopener noreferrer">{url}</a>
            <CopyButton text={url} label={chat.copyLink} />
            <Button
              size="small" busy={revoke.isPending && revoke.variables === id}
              onClick={() => revoke.mutate(id, { onSuccess: () => toast(chat.revoked), onError })}
            >
              {chat.revoke}
            </Button>
            <span className={styles["linkText"]}>{chat.created} <Time at={created} /></span>
          </li>
        ))}
      </ul>
      <DialogActions>
        <Button look="primary" busy={create.isPending} onClick={() => create.mutate(undefined, { onError })}>{chat.createLink}</Button>
      </DialogActions>
    </>
  );
}
