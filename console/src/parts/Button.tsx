import type { ComponentPropsWithRef } from "react";
import styles from "./Button.module.css";
import { classes } from "./classes";

export interface ButtonProps extends ComponentPropsWithRef<"button"> {
  look?: "primary" | "plain" | "quiet" | "danger";
  size?: "medium" | "small" | "icon";
  busy?: boolean;
}

/** A button. `busy` keeps it focused and announces that it is at work. */
export function Button({ look = "plain", size = "medium", busy = false, className, onClick, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={buttonClass(look, size, className)}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
    />
  );
}

/** The class of a link that looks like a button. */
export function buttonClass(
  look: NonNullable<ButtonProps["look"]> = "plain",
  size: NonNullable<ButtonProps["size"]> = "medium",
  more?: string,
): string {
  return classes(styles["button"], styles[look], styles[size], more);
}
