import { Dialog as Base } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, type RefObject, useRef } from "react";
import { texts } from "../texts";
import { buttonClass } from "./Button";
import { classes } from "./classes";
import styles from "./Dialog.module.css";
import { InDialog } from "./in-dialog";

/** A modal dialog. If `persistent` is true, only buttons in `children` close it, because its content cannot be shown
 * again. `wide` is for larger forms. When the dialog closes, the focus returns to `returnTo`, or to the element that
 * had the focus before. */
export function Dialog({ open, onClose, title, text, returnTo, persistent = false, wide = false, children }: {
  open: boolean;
  onClose: () => void;
  title: string;
  text?: string;
  returnTo?: RefObject<HTMLElement | null>;
  persistent?: boolean;
  wide?: boolean;
  children: ReactNode;
}) {
  // Remember the focused element during rendering, because a field of the dialog can take the focus as soon as it is
  // mounted.
  const opener = useRef<HTMLElement>(null);
  const wasOpen = useRef(false);
  if (open && !wasOpen.current) opener.current = document.activeElement === document.body ? null : document.activeElement as HTMLElement;
  wasOpen.current = open;
  return (
    <Base.Root
      open={open}
      disablePointerDismissal={persistent}
      onOpenChange={(next, details) => {
        if (next || (persistent && details.reason === "escape-key")) return;
        onClose();
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
          <InDialog value>{children}</InDialog>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** The row of buttons at the end of a dialog. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles["actions"]}>{children}</div>;
}
