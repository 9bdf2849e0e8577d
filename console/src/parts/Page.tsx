import { type ReactNode, useEffect } from "react";
import { texts } from "../texts";
import { classes } from "./classes";
import styles from "./Page.module.css";

/** A page of the console: the heading, `actions` beside it, `views` with links to related pages, and `filterBar`
 * with filters. */
export function Page({ title, actions, views, filterBar, children, wide = false }: {
  title: string;
  actions?: ReactNode;
  views?: ReactNode;
  filterBar?: ReactNode;
  children: ReactNode;
  wide?: boolean;
}) {
  useEffect(() => {
    document.title = texts.titleOf(title);
  }, [title]);
  return (
    <div className={classes(styles["page"], wide && styles["wide"])}>
      <header className={styles["head"]}>
        <h1 className={styles["title"]}>{title}</h1>
        {actions !== undefined && <div className={styles["actions"]}>{actions}</div>}
      </header>
      {views !== undefined && <div className={styles["bar"]}>{views}</div>}
      {filterBar !== undefined && <div className={styles["bar"]}>{filterBar}</div>}
      {children}
    </div>
  );
}

/** A framed part of a page. */
export function Panel({ title, actions, children, label }: {
  title?: string;
  actions?: ReactNode;
  children: ReactNode;
  label?: string;
}) {
  return (
    <section className={styles["panel"]} aria-label={label ?? title}>
      {title !== undefined && (
        <div className={styles["panelHead"]}>
          <h2 className={styles["panelTitle"]}>{title}</h2>
          {actions}
        </div>
      )}
      {children}
    </section>
  );
}
