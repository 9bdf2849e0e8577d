import { useActorName } from "./actors";
import type { AuditEvent } from "./api";
import styles from "./AuditPage.module.css";

/** Shows who caused the event: the name of a user or of an OAuth client, or the kind of any other actor. */
export function Actor({ event }: { event: AuditEvent }) {
  return <span className={styles["actor"]}>{useActorName(event)}</span>;
}
