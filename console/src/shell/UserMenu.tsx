import { type ComponentType, type KeyboardEvent, useRef, useState } from "react";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { AccountButtonContent } from "./AccountButtonContent";
import styles from "./Account.module.css";

const load = () => import("./AccountMenu");
const preload = () => void load().catch(() => undefined);

/** The button of the account. Its menu is loaded when the pointer or the focus reaches the button, because the first
 * page needs no menu. */
export function UserMenu() {
  const [Menu, setMenu] = useState<ComponentType>();
  const [isLoading, setLoading] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  if (Menu) return <Menu />;

  async function open() {
    setLoading(true);
    try {
      const { AccountMenu } = await load();
      const { activeElement } = document;
      // A menu that opened later would take the focus from the field in which the user types meanwhile.
      if (activeElement === button.current || activeElement === document.body) setMenu(() => AccountMenu);
    } catch {
      // After an update of the server, the files of the former version no longer exist.
      toast(texts.user.menuFailed, "failed");
    } finally {
      setLoading(false);
    }
  }

  function openByArrow(event: KeyboardEvent) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    void open();
  }

  return (
    <button
      type="button" className={styles["trigger"]} ref={button} aria-haspopup="menu" aria-expanded={false} aria-busy={isLoading || undefined}
      onPointerEnter={preload} onFocus={preload} onClick={() => void open()} onKeyDown={openByArrow}
    >
      <AccountButtonContent />
    </button>
  );
}
