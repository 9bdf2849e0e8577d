import type { ReactNode } from "react";
import styles from "./Segments.module.css";

/** A row of links of which one is current: views of one page, whose state is in the URL. */
export function Segments({ label, children }: { label: string; children: ReactNode }) {
  return <nav className={styles["segments"]} aria-label={label}>{children}</nav>;
}
