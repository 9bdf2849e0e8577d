/** Short messages about completed and failed actions, in the corner of the page. */
import { Toast } from "@base-ui/react/toast";
import { X } from "lucide-react";
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
  return toasts.map((item) => (
    <Toast.Root key={item.id} toast={item} className={styles["toast"]}>
      <Toast.Content className={styles["content"]}>
        <span className={styles["dot"]} data-type={item.type} aria-hidden />
        <Toast.Title className={styles["title"]} />
        {/* Base UI hides this button from screen readers while toasts are collapsed. It stays focusable, so it must not
           be hidden. */}
        <Toast.Close className={buttonClass("quiet", "icon")} aria-label={texts.close} aria-hidden={false}><X aria-hidden /></Toast.Close>
      </Toast.Content>
    </Toast.Root>
  ));
}
