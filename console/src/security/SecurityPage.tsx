import { useRef, useState } from "react";
import { useSession } from "../api/queries";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { ErrorState, Skeleton } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { securityTexts } from "../texts/security";
import { useChangePassword, useEndSession, useSessions } from "./api";
import { Factors } from "./Factors";
import { PasswordForm } from "./PasswordForm";
import { SessionRow } from "./SessionRow";
import styles from "./SecurityPage.module.css";

/** The user's password, second factors and sessions. */
export function SecurityPage() {
  return (
    <Page title={securityTexts.title}>
      <div className={styles["panels"]}>
        <Password />
        <Factors />
        <Sessions />
      </div>
    </Page>
  );
}

function Password() {
  const security = securityTexts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const change = useChangePassword();
  const close = () => setOpen(false);
  const { has_password: hasPassword } = useSession();
  if (!hasPassword) return <Panel title={security.password}><p className={styles["text"]}>{security.noPassword}</p></Panel>;
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
  const security = securityTexts;
  const [page, setPage] = useState(1);
  const sessions = useSessions(page);
  const end = useEndSession();
  const { data } = sessions;
  return (
    <Panel title={security.sessions}>
      {sessions.error && data === undefined ? (
        <ErrorState error={sessions.error} onRetry={() => void sessions.refetch()} />
      ) : data === undefined ? (
        <div className={styles["text"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : (
        <>
          <ul className={styles["list"]}>{data.rows.map((session) => <SessionRow key={session.id} session={session} onEnd={(id) => end.mutateAsync(id)} />)}</ul>
          {(page > 1 || data.total > PAGE_SIZE) && <Pager name={security.sessions} page={page} size={PAGE_SIZE} total={data.total} onPage={setPage} />}
        </>
      )}
    </Panel>
  );
}
