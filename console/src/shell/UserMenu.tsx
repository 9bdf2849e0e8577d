import { Menu } from "@base-ui/react/menu";
import { Link } from "@tanstack/react-router";
import { Check, ChevronsUpDown, LogOut, Monitor, Moon, ShieldCheck, Sun } from "lucide-react";
import { useSession } from "../api/queries";
import { signOut } from "../api/session";
import { MenuItem, MenuPopup, MenuSeparator, menuStyles } from "../parts/Menu";
import { errorText } from "../parts/states";
import { type Theme, useTheme } from "../parts/theme";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import styles from "./UserMenu.module.css";

const THEMES = [["system", Monitor], ["light", Sun], ["dark", Moon]] as const;

export function UserMenu() {
  const { user } = useSession();
  const [theme, chooseTheme] = useTheme();
  const name = user.display_name ?? user.username ?? user.email ?? user.id;
  return (
    <Menu.Root>
      <Menu.Trigger className={styles["trigger"]}>
        <span className={styles["hidden"]}>{texts.user.menu}: </span>
        <span className={styles["picture"]} aria-hidden>{initials(name)}</span>
        <span className={styles["names"]}>
          <span className={styles["name"]}>{name}</span>
          <span className={styles["role"]}>{name === user.email ? texts.roleOf(user.role) : (user.email ?? texts.roleOf(user.role))}</span>
        </span>
        <ChevronsUpDown aria-hidden size={14} />
      </Menu.Trigger>
      <MenuPopup within="navigation" side="top" align="start">
        <Menu.RadioGroup value={theme} onValueChange={(value: Theme) => chooseTheme(value)}>
          <Menu.Group>
            <Menu.GroupLabel className={menuStyles["label"]}>{texts.user.theme}</Menu.GroupLabel>
            {THEMES.map(([value, Icon]) => (
              <Menu.RadioItem key={value} value={value} className={menuStyles["item"]}>
                <Icon aria-hidden size={15} strokeWidth={1.75} />
                {texts.user[value]}
                <Menu.RadioItemIndicator className={menuStyles["check"]}><Check aria-hidden size={14} /></Menu.RadioItemIndicator>
              </Menu.RadioItem>
            ))}
          </Menu.Group>
        </Menu.RadioGroup>
        <MenuSeparator />
        <MenuItem render={<Link to="/security" />}>
          <ShieldCheck aria-hidden size={15} strokeWidth={1.75} />
          {texts.user.security}
        </MenuItem>
        <MenuItem onClick={() => void signOut().catch((error: unknown) => toast(errorText(error), "failed"))}>
          <LogOut aria-hidden size={15} strokeWidth={1.75} />
          {texts.user.signOut}
        </MenuItem>
      </MenuPopup>
    </Menu.Root>
  );
}

function initials(name: string): string {
  const words = name.split("@")[0]?.split(/[\s._-]+/).filter(Boolean) ?? [];
  return words.slice(0, 2).map((word) => word[0]?.toUpperCase()).join("") || "?";
}
