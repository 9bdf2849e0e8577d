import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Dialog } from "../parts/Dialog";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";
import { Actor } from "./Actor";
import { type AuditEvent, useAuditActions } from "./api";
import styles from "./AuditPage.module.css";
import { EventDetails } from "./EventDetails";

/** One event with all its fields. */
export function EventDialog({ event, onClose }: { event: AuditEvent | null; onClose: () => void }) {
  const actions = useAuditActions();
  const audit = auditTexts;
  return (
    <Dialog
      open={event !== null} onClose={onClose} title={event?.action ?? ""}
      text={actions.data?.find(({ action }) => action === event?.action)?.description ?? ""}
    >
      {event !== null && (
        <dl className={styles["facts"]}>
          <Fact name={audit.sequence}>{event.sequence.toLocaleString("en")}</Fact>
          <Fact name={audit.time}><Time at={event.timestamp} /></Fact>
          <Fact name={audit.actor}><Actor event={event} /></Fact>
          <Fact name={audit.actorId}>{event.actor_id}</Fact>
          <Fact name={audit.outcome}>{texts.statusOf(event.outcome)}</Fact>
          <Fact name={audit.reason}>{event.reason}</Fact>
          <Fact name={audit.resource}>{[event.resource_type, event.resource_id].filter(Boolean).join(" ")}</Fact>
          <Fact name={audit.target}>{[event.target_provider, event.target_model].filter(Boolean).join("/")}</Fact>
          <Fact name={audit.request}>
            {event.request_id !== null && (
              <Link to="/requests" search={{ period: "all", request: event.request_id }}>{event.request_id}</Link>
            )}
          </Fact>
          <Fact name={audit.ip}>{event.ip}</Fact>
          <Fact name={audit.hash}><code>{event.hash}</code></Fact>
          {Object.keys(event.details).length > 0 && (
            <Fact name={audit.details}>
              <div className={styles["details"]} tabIndex={0} role="group" aria-label={audit.details}><EventDetails details={event.details} /></div>
            </Fact>
          )}
        </dl>
      )}
    </Dialog>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === false || children === "") return null;
  return <div className={styles["fact"]}><dt>{name}</dt><dd>{children}</dd></div>;
}
