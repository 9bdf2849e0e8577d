import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, type RefObject, useEffect, useId, useRef } from "react";
import { texts } from "../texts";
import { buttonClass } from "./Button";
import { classes } from "./classes";
import styles from "./Dialog.module.css";
import { InDialog } from "./in-dialog";
import { closeDialog } from "./unsaved";

/** The ids of the open dialogs, the last opened one at the end. A question can be above the dialog of a form. */
const openDialogs: string[] = [];

/** A modal dialog. If `persistent` is true, only buttons in `children` close it, because its content cannot be shown
 * again. If a form in it has unsaved changes, closing it asks first. `wide` is for larger forms. When the dialog closes,
 * the focus returns to `returnTo`, or to the element that had the focus before. */
export function Dialog({ open, onClose, title, text, returnTo, persistent = false, wide = false, children }: {
  open: boolean;
  onClose: () => void;
  title: string;
  text?: ReactNode;
  returnTo?: RefObject<HTMLElement | null>;
  persistent?: boolean;
  wide?: boolean;
  children: ReactNode;
}) {
  // Remember the focused element during rendering, because a field of the dialog can take the focus as soon as it is
  // mounted.
  const opener = useRef<HTMLElement>(null);
  const wasOpen = useRef(false);
  if (open && !wasOpen.current) opener.current = openerOf(document.activeElement);
  wasOpen.current = open;
  const id = useId();
  useEffect(() => {
    if (!open) return undefined;
    openDialogs.push(id);
    return () => void openDialogs.splice(openDialogs.lastIndexOf(id), 1);
  }, [open, id]);
  return (
    <Base.Root
      open={open}
      disablePointerDismissal={persistent}
      onOpenChange={(next, details) => {
        if (next) return;
        if (details.reason === "escape-key") {
          // Each open dialog hears the key. Only the last opened one closes.
          if (persistent || openDialogs.at(-1) !== id) return;
          details.event.stopImmediatePropagation();
        }
        closeDialog(id, onClose);
      }}
    >
      <Base.Portal>
        <Base.Backdrop className={styles["backdrop"]} />
        <Base.Popup className={classes(styles["popup"], wide && styles["wide"])} finalFocus={returnTo ?? opener}>
          <div className={styles["head"]}>
            <Base.Title className={styles["title"]}>{title}</Base.Title>
            {!persistent && (
              <Base.Close className={buttonClass("quiet", "icon", styles["close"])} aria-label={texts.close}>
                <X aria-hidden />
              </Base.Close>
            )}
          </div>
          {text !== undefined && <Base.Description className={styles["text"]}>{text}</Base.Description>}
          <InDialog value={id}>{children}</InDialog>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** Returns the element that gets the focus when a dialog closes. An item of a menu is removed when it opens a dialog, so
 * it is the button of the menu. */
function openerOf(focused: Element | null): HTMLElement | null {
  if (focused === document.body) return null;
  const menu = focused?.closest("[role=menu]");
  return (menu ? document.getElementById(menu.getAttribute("aria-labelledby") ?? "") : focused) as HTMLElement | null;
}

/** The row of buttons at the end of a dialog. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles["actions"]}>{children}</div>;
}
