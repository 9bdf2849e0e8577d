import { useRef, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { Page, Panel } from "../parts/Page";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { type Session, useChangePassword, useEndSession, useSessions } from "./api";
import { Factors } from "./Factors";
import { PasswordForm } from "./PasswordForm";
import styles from "./SecurityPage.module.css";

/** One's own password, second factors and sessions. */
export function SecurityPage() {
  return (
    <Page title={texts.security.title}>
      <div className={styles["panels"]}>
        <Password />
        <Factors />
        <Sessions />
      </div>
    </Page>
  );
}

function Password() {
  const { security } = texts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const change = useChangePassword();
  const close = () => setOpen(false);
  return (
    <Panel
      title={security.password}
      actions={<Button ref={trigger} size="small" onClick={() => setOpen(true)}>{security.changePassword}</Button>}
    >
      <p className={styles["text"]}>{security.passwordText}</p>
      <Dialog open={open} onClose={close} returnTo={trigger} title={security.changePassword} text={security.changePasswordText}>
        <PasswordForm
          onCancel={close}
          onSubmit={async (body) => {
            await change.mutateAsync(body);
            toast(security.passwordChanged);
            close();
          }}
        />
      </Dialog>
    </Panel>
  );
}

function Sessions() {
  const { security } = texts;
  const sessions = useSessions();
  const { data } = sessions;
  return (
    <Panel title={security.sessions}>
      {sessions.error && data === undefined ? (
        <ErrorState error={sessions.error} onRetry={() => void sessions.refetch()} />
      ) : data === undefined ? (
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : (
        <ul className={styles["list"]}>{data.map((session) => <SessionRow key={session.id} session={session} />)}</ul>
      )}
    </Panel>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { security } = texts;
  const [ending, setEnding] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const end = useEndSession();
  const name = session.user_agent ?? security.unknownProgram;
  return (
    <li className={styles["row"]}>
      <span className={styles["names"]}>
        <span className={styles["name"]} title={name}>{name}</span>
        <span className={styles["muted"]}>
          {session.ip ?? texts.none} · {security.lastSeen} <Time at={session.last_seen_at} as="relative" />
        </span>
      </span>
      {session.current ? (
        <Badge tone="success">{security.thisSession}</Badge>
      ) : (
        <Button ref={trigger} size="small" onClick={() => setEnding(true)}>{security.endSession}</Button>
      )}
      <ConfirmDialog
        open={ending} onClose={() => setEnding(false)} returnTo={trigger} title={security.endTitle} text={security.endText}
        action={security.endSession} run={() => end.mutateAsync(session.id)} done={security.sessionEnded}
      />
    </li>
  );
}
