import type { ComponentPropsWithRef } from "react";
import styles from "./Button.module.css";
import { classes } from "./classes";

export interface ButtonProps extends ComponentPropsWithRef<"button"> {
  look?: "primary" | "plain" | "quiet" | "danger";
  size?: "medium" | "small" | "icon";
  busy?: boolean;
}

/** A button. `busy` marks it as busy for screen readers. A busy or disabled button uses `aria-disabled` and therefore
 * keeps the focus. Otherwise, the focus would be lost when a click disables the button, such as the "Next" button on
 * the last page. */
export function Button({ look = "plain", size = "medium", busy = false, disabled = false, className, onClick, ...rest }: ButtonProps) {
  const isOff = busy || disabled || rest["aria-disabled"] === true;
  return (
    <button
      type="button"
      {...rest}
      className={buttonClass(look, size, className)}
      aria-disabled={isOff || undefined}
      aria-busy={busy || undefined}
      onClick={isOff ? (event) => event.preventDefault() : onClick}
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
