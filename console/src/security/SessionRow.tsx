import { useRef, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { securityTexts } from "../texts/security";
import type { Session } from "./api";
import { programOf } from "./user-agents";
import styles from "./SecurityPage.module.css";

/** An open session. If `onEnd` is set, a button ends it, unless it is the current session. */
export function SessionRow({ session, onEnd }: { session: Session; onEnd?: ((id: string) => Promise<unknown>) | undefined }) {
  const security = securityTexts;
  const [ending, setEnding] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const agent = session.user_agent;
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]} title={agent ?? undefined}>{agent === null ? security.unknownProgram : programOf(agent)}</span>
        <span className={styles["muted"]}>
          {session.ip ?? texts.none} · {security.lastSeen} <Time at={session.last_seen_at} as="relative" />
        </span>
      </span>
      {session.current ? (
        <Badge tone="success">{security.thisSession}</Badge>
      ) : onEnd !== undefined && (
        <Button ref={trigger} size="small" onClick={() => setEnding(true)}>{security.endSession}</Button>
      )}
      {onEnd !== undefined && (
        <ConfirmDialog
          open={ending} onClose={() => setEnding(false)} returnTo={trigger} title={security.endTitle} text={security.endText}
          action={security.endSession} run={() => onEnd(session.id)} done={security.sessionEnded}
        />
      )}
    </li>
  );
}
