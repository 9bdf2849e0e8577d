import { Menu } from "@base-ui/react/menu";
import { MoreHorizontal } from "lucide-react";
import type { ReactNode, RefObject } from "react";
import { buttonClass } from "./Button";
import { MenuPopup } from "./Menu";

/** The menu of actions at the end of a row. Dialogs that its items open return the focus to `trigger`. */
export function RowMenu({ label, trigger, children }: {
  label: string;
  trigger?: RefObject<HTMLButtonElement | null>;
  children: ReactNode;
}) {
  return (
    <Menu.Root>
      <Menu.Trigger {...(trigger && { ref: trigger })} className={buttonClass("quiet", "icon")} aria-label={label}>
        <MoreHorizontal aria-hidden />
      </Menu.Trigger>
      <MenuPopup within="content">{children}</MenuPopup>
    </Menu.Root>
  );
}
