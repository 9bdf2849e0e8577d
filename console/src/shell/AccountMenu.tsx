import { Menu } from "@base-ui/react/menu";
import { Link } from "@tanstack/react-router";
import { Check, LogOut, Monitor, Moon, ShieldCheck, Sun } from "lucide-react";
import { useEffect, useLayoutEffect, useRef } from "react";
import { signOut } from "../api/session";
import { MenuItem, MenuPopup, MenuSeparator, menuStyles } from "../parts/Menu";
import { errorText } from "../parts/states";
import { type Theme, useTheme } from "../parts/theme";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { AccountButtonContent } from "./AccountButtonContent";
import styles from "./Account.module.css";

const THEMES = [["system", Monitor], ["light", Sun], ["dark", Moon]] as const;

/** The button and the menu of the account. It takes the place of a button that was clicked, and opens at once. */
export function AccountMenu() {
  const [theme, chooseTheme] = useTheme();
  const trigger = useRef<HTMLButtonElement>(null);
  const wasOpened = useRef(false);
  // Before other code can see that the former button lost the focus.
  useLayoutEffect(() => trigger.current?.focus(), []);
  useEffect(() => {
    // In development effects run twice, and the second click would close the menu.
    if (wasOpened.current) return;
    wasOpened.current = true;
    trigger.current?.click();
  }, []);
  return (
    <Menu.Root>
      <Menu.Trigger className={styles["trigger"]} ref={trigger}><AccountButtonContent /></Menu.Trigger>
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
