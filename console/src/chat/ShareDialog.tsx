import { type RefObject, useState } from "react";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/Copy";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Pager } from "../parts/Pager";
import { errorText } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { chatTexts } from "../texts/chat";
import { LINKS_PAGE_SIZE, useCreateLink, useRevokeLink, useShareLinks } from "./api";
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
  const [page, setPage] = useState(1);
  const links = useShareLinks(conversationId, page);
  const create = useCreateLink(conversationId);
  const revoke = useRevokeLink(conversationId);
  const onError = (error: unknown) => toast(errorText(error), "failed");
  const { rows, total = 0 } = links.data ?? {};
  // A new link is the last one of the list.
  const showNew = () => setPage(Math.ceil((total + 1) / LINKS_PAGE_SIZE));
  return (
    <>
      {links.error && <p className={styles["fault"]} role="alert">{errorText(links.error)}</p>}
      {rows !== undefined && total === 0 && <p className={styles["none"]}>{chat.noLinks}</p>}
      <ul className={styles["links"]} aria-label={chat.links}>
        {rows?.map(({ id, url, created_at: created }) => (
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
      {(total > LINKS_PAGE_SIZE || page > 1) && <Pager page={page} size={LINKS_PAGE_SIZE} total={total} onPage={setPage} />}
      <DialogActions>
        <Button look="primary" busy={create.isPending} onClick={() => create.mutate(undefined, { onSuccess: showNew, onError })}>{chat.createLink}</Button>
      </DialogActions>
    </>
  );
}
