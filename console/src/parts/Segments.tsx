import type { ReactNode } from "react";
import styles from "./Segments.module.css";

/** A row of links to the views of a page. The URL contains the current view. */
export function Segments({ label, children }: { label: string; children: ReactNode }) {
  return <nav className={styles["segments"]} aria-label={label}>{children}</nav>;
}
