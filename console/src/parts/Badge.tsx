import type { ReactNode } from "react";
import styles from "./Badge.module.css";
import { classes } from "./classes";

export type Tone = "neutral" | "success" | "warning" | "danger" | "info" | "accent";

/** A short text in a colored badge, such as a status. A dot shows the color if the text does not. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={classes(styles["badge"], styles[tone])}>{children}</span>;
}
