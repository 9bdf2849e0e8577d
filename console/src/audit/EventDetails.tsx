import type { ReactNode } from "react";
import { useUserName } from "../api/users";
import { useKeyName } from "../requests/choosing";
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";
import styles from "./EventDetails.module.css";
import { isChange, labelOf, textOf } from "./details";

/** The details of an event as named values. A changed field shows its former and its new value. */
export function EventDetails({ details }: { details: Readonly<Record<string, unknown>> }) {
  return (
    <dl className={styles["details"]}>
      {Object.entries(details).map(([name, value]) => (
        <div key={name} className={styles["detail"]}>
          <dt>{labelOf(name)}</dt>
          <dd>{typeof value === "string" && name in NAMED ? <Named field={name as keyof typeof NAMED} id={value} /> : shown(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The fields with ids of objects that have a name. */
const NAMED = { api_key_id: useKeyName, user_id: useUserName } as const;

function Named({ field, id }: { field: keyof typeof NAMED; id: string }) {
  const useName = NAMED[field];
  return <span title={id}>{useName(id)}</span>;
}

function shown(value: unknown): ReactNode {
  const text = textOf(value);
  if (text !== null) return text === "" ? texts.none : text;
  if (Array.isArray(value)) {
    return <ul className={styles["list"]}>{value.map((item, at) => <li key={at}>{shown(item)}</li>)}</ul>;
  }
  if (isChange(value)) return <>{shown(value.old)} <span aria-label={auditTexts.becomes} role="img">→</span> {shown(value.new)}</>;
  return <EventDetails details={value as Record<string, unknown>} />;
}
