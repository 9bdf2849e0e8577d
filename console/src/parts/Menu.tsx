import { Menu as Base } from "@base-ui/react/menu";
import { type ComponentProps, type ReactNode, use, useEffect, useState } from "react";
import { classes } from "./classes";
import { InDialog } from "./in-dialog";
import styles from "./Menu.module.css";

/** The popup of a menu. It is rendered in the landmark with the id `within`, so that all content is inside a landmark.
 * In a dialog, it is rendered in `body` instead, above the dialog. */
export function MenuPopup({ within, side = "bottom", align = "end", children }: {
  within: "content" | "navigation";
  side?: "top" | "bottom";
  align?: "start" | "end";
  children: ReactNode;
}) {
  const [container, setContainer] = useState<HTMLElement | null>(null);
  const inDialog = use(InDialog);
  useEffect(() => setContainer(inDialog !== null ? document.body : document.getElementById(within)), [inDialog, within]);
  return (
    <Base.Portal container={container}>
      <Base.Positioner side={side} align={align} sideOffset={5} className={styles["positioner"]}>
        <Base.Popup className={styles["popup"]}>{children}</Base.Popup>
      </Base.Positioner>
    </Base.Portal>
  );
}

export function MenuItem({ danger = false, ...rest }: ComponentProps<typeof Base.Item> & { danger?: boolean }) {
  return <Base.Item {...rest} className={classes(styles["item"], danger && styles["danger"])} />;
}

export function MenuSeparator() {
  return <Base.Separator className={styles["separator"]} />;
}

export { styles as menuStyles };
