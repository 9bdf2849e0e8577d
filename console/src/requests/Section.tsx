import type { ReactNode } from "react";
import { CopyButton } from "../parts/Copy";
import { texts } from "../texts";
import styles from "./RecordDetail.module.css";

/** A part of the details, with named values or other content. */
export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles["section"]} aria-label={title}>
      <h3 className={styles["name"]}>{title}</h3>
      {children}
    </section>
  );
}

/** Named values. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={styles["facts"]}>{children}</dl>;
}

/** A named value. Renders nothing if `children` is empty. If `copy` is set, a button copies this text. */
export function Fact({ name, copy, children }: { name: string; copy?: string | null; children: ReactNode }) {
  if (children === null || children === undefined || children === "" || children === false) return null;
  return (
    <div className={styles["fact"]}>
      <dt>{name}</dt>
      <dd>
        <span className={styles["value"]}>{children}</span>
        {copy !== undefined && copy !== null && <CopyButton text={copy} label={`${texts.copy} ${name}`} />}
      </dd>
    </div>
  );
}

/** A list of entries. If there are none, shows the text `none`. */
export function Entries({ none, children }: { none: string; children: ReactNode[] }) {
  if (children.length === 0) return <p className={styles["muted"]}>{none}</p>;
  return <ul className={styles["entries"]}>{children}</ul>;
}
