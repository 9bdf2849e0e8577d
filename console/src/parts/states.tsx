/** Components that are shown instead of data: while it is loading, if there is none, if a request failed. */
import type { LucideIcon } from "lucide-react";
import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { ApiError } from "../api/errors";
import { texts } from "../texts";
import { Button } from "./Button";
import styles from "./states.module.css";

export function EmptyState({ icon: Icon, title, text, children }: {
  icon: LucideIcon;
  title: string;
  text?: string;
  children?: ReactNode;
}) {
  return (
    <div className={styles["state"]}>
      <span className={styles["icon"]}><Icon aria-hidden size={20} strokeWidth={1.75} /></span>
      <h2 className={styles["title"]}>{title}</h2>
      {text !== undefined && <p className={styles["text"]}>{text}</p>}
      {children !== undefined && <div className={styles["actions"]}>{children}</div>}
    </div>
  );
}

export function ErrorState({ error, title = texts.errors.title, onRetry }: {
  error: unknown;
  title?: string;
  onRetry?: () => void;
}) {
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div className={styles["state"]} role="alert">
      <span className={styles["alert"]}><CircleAlert aria-hidden size={20} strokeWidth={1.75} /></span>
      <h2 className={styles["title"]}>{title}</h2>
      <p className={styles["text"]}>{errorText(error)}</p>
      {requestId !== null && <p className={styles["id"]}>{texts.errors.requestId(requestId)}</p>}
      {onRetry !== undefined && (
        <div className={styles["actions"]}><Button onClick={onRetry}>{texts.retry}</Button></div>
      )}
    </div>
  );
}

/** Returns the error message of a failed request, including the fields that it names. This is the API's message, except
 * for 412: the user does not send versions, and repeats the change in a form. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.status === 412) return texts.errors.changed;
    const faults = Object.entries(error.fields).map(([path, message]) => (path === "" ? message : `${path}: ${message}`));
    return [error.message, ...faults].join(" ");
  }
  return error instanceof TypeError ? texts.errors.network : texts.errors.unexpected;
}

/** A grey bar in the place of a text that is loading. */
export function Skeleton({ width = "6rem" }: { width?: string }) {
  return <span className={styles["skeleton"]} style={{ width }} aria-hidden />;
}
