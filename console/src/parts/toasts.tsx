/** Short messages about completed and failed actions, in the corner of the page. */
import { Toast } from "@base-ui/react/toast";
import { X } from "lucide-react";
import { useEffect, useRef } from "react";
import { texts } from "../texts";
import { buttonClass } from "./Button";
import styles from "./toasts.module.css";

const manager = Toast.createToastManager();

export function toast(title: string, type: "done" | "failed" = "done"): void {
  manager.add({ title, type, priority: type === "failed" ? "high" : "low" });
}

export function Toaster() {
  return (
    <Toast.Provider toastManager={manager} timeout={6000}>
      <Toast.Portal>
        <Toast.Viewport className={styles["viewport"]}><Toasts /></Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function Toasts() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((item) => <Message key={item.id} item={item} />);
}

function Message({ item }: { item: Toast.Root.ToastObject }) {
  const root = useRef<HTMLDivElement>(null);
  const { id } = item;
  // A message must not cover the control that a keyboard user moves to.
  useEffect(() => {
    const uncover = ({ target }: FocusEvent) => {
      if (root.current !== null && target instanceof Element && isCovered(target, root.current)) manager.close(id);
    };
    document.addEventListener("focusin", uncover);
    return () => document.removeEventListener("focusin", uncover);
  }, [id]);
  return (
    <Toast.Root ref={root} toast={item} className={styles["toast"]}>
      <Toast.Content className={styles["content"]}>
        <span className={styles["dot"]} data-type={item.type} aria-hidden />
        <Toast.Title className={styles["title"]} />
        {/* Base UI hides this button from screen readers while toasts are collapsed. It stays focusable, so it must not
           be hidden. */}
        <Toast.Close className={buttonClass("quiet", "icon")} aria-label={texts.close} aria-hidden={false}><X aria-hidden /></Toast.Close>
      </Toast.Content>
    </Toast.Root>
  );
}

/** Returns whether the centre of the control is covered. The area of the content can have the focus too, and is larger
 * than a message. */
function isCovered(control: Element, cover: Element): boolean {
  if (cover.contains(control) || control.contains(cover)) return false;
  const { left, right, top, bottom } = control.getBoundingClientRect();
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const area = cover.getBoundingClientRect();
  return area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
}
