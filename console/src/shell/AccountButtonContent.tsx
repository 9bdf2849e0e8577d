import { ChevronsUpDown } from "lucide-react";
import { useSession } from "../api/queries";
import { texts } from "../texts";
import styles from "./Account.module.css";

/** Content of the account menu button: initials, name and role of the signed-in user. */
export function AccountButtonContent() {
  const { user } = useSession();
  const name = user.display_name ?? user.username ?? user.email ?? user.id;
  return (
    <>
      <span className={styles["hidden"]}>{texts.user.menu}: </span>
      <span className={styles["initials"]} aria-hidden>{initials(name)}</span>
      <span className={styles["names"]}>
        <span className={styles["name"]}>{name}</span>
        <span className={styles["role"]}>{name === user.email ? texts.roleOf(user.role) : (user.email ?? texts.roleOf(user.role))}</span>
      </span>
      <ChevronsUpDown aria-hidden size={14} />
    </>
  );
}

function initials(name: string): string {
  const words = name.split("@")[0]?.split(/[\s._-]+/).filter(Boolean) ?? [];
  return words.slice(0, 2).map((word) => word[0]?.toUpperCase()).join("") || "?";
}
