import type { ReactNode } from "react";
import styles from "./Facts.module.css";

/** Named values, one below the other. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={styles["facts"]}>{children}</dl>;
}

/** A named value. `source` is a text about the source of the value. */
export function Fact({ name, source, children }: { name: string; source?: string; children: ReactNode }) {
  return (
    <div className={styles["fact"]}>
      <dt>{name}</dt>
      <dd>
        {children}
        {source !== undefined && <span className={styles["source"]}>{source}</span>}
      </dd>
    </div>
  );
}
