import { Link } from "@tanstack/react-router";
import { KeyRound, MonitorSmartphone, Plus } from "lucide-react";
import { type ReactNode, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useServiceKeys } from "../keys/api";
import { CreateKeyDialog } from "../keys/CreateKeyDialog";
import { KeyActions } from "../keys/KeyActions";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { Dialog } from "../parts/Dialog";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { SessionRow } from "../security/SessionRow";
import { texts } from "../texts";
import { keyTexts } from "../texts/keys";
import { userTexts } from "../texts/users";
import { nameOf, type User, useEndUserSession, useEndUserSessions, useUser, useUserSessions } from "./api";
import styles from "./UsersPage.module.css";

/** The sessions of a person, or the API keys of a service account. */
export function UserDialog({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  return id === undefined ? null : <OpenDialog key={id} id={id} onClose={onClose} />;
}

function OpenDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const users = userTexts;
  const { data: user, error, refetch } = useUser(id);
  const isService = user?.kind === "service";
  return (
    <Dialog
      open onClose={onClose} wide title={user === undefined ? users.title : isService ? users.keysOf(nameOf(user)) : users.sessionsOf(nameOf(user))}
      text={isService ? users.keysText : users.sessionsText}
    >
      <div className={styles["body"]}>
        <p className={styles["links"]}>
          <Link to="/requests" search={{ user: id, period: "all" }}>{users.requests}</Link>
          <Link to="/spend" search={{ user: id, by: "api_key" }}>{users.spend}</Link>
        </p>
        {user === undefined ? <Waiting error={error} onRetry={() => void refetch()} /> : isService ? <Keys user={user} /> : <Sessions user={user} />}
      </div>
    </Dialog>
  );
}

function Waiting({ error, onRetry }: { error: unknown; onRetry: () => void }): ReactNode {
  return error ? <ErrorState error={error} onRetry={onRetry} /> : <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>;
}

/** The pager of a list that has several pages. */
function ListPager({ name, page, total, onPage }: { name: string; page: number; total: number; onPage: (page: number) => void }) {
  return page > 1 || total > PAGE_SIZE ? <Pager name={name} page={page} size={PAGE_SIZE} total={total} onPage={onPage} /> : null;
}

function Sessions({ user }: { user: User }) {
  const users = userTexts;
  const { administers } = useRights();
  const [page, setPage] = useState(1);
  const { data, error, refetch } = useUserSessions(user.id, page);
  const end = useEndUserSession(user.id);
  const endAll = useEndUserSessions(user.id);
  const [ending, setEnding] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  if (data === undefined) return <Waiting error={error} onRetry={() => void refetch()} />;
  if (data.total === 0) return <EmptyState icon={MonitorSmartphone} title={users.noSessions} />;
  return (
    <>
      {administers && (
        <div><Button ref={trigger} look="danger" size="small" onClick={() => setEnding(true)}>{users.endSessions}</Button></div>
      )}
      <ul className={styles["list"]} aria-label={users.sessionList}>
        {data.rows.map((session) => (
          <SessionRow key={session.id} session={session} onEnd={administers ? (sessionId) => end.mutateAsync(sessionId) : undefined} />
        ))}
      </ul>
      <ListPager name={users.sessionList} page={page} total={data.total} onPage={setPage} />
      <ConfirmDialog
        open={ending} onClose={() => setEnding(false)} returnTo={trigger} title={users.endSessionsTitle(nameOf(user))}
        text={users.endSessionsText} action={users.endSessions} run={() => endAll.mutateAsync(undefined)} done={users.sessionsEnded(nameOf(user))}
      />
    </>
  );
}

function Keys({ user }: { user: User }) {
  const users = userTexts;
  const keys = keyTexts;
  const { administers } = useRights();
  const [page, setPage] = useState(1);
  const { data, error, refetch } = useServiceKeys(user.id, page);
  const [creating, setCreating] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  if (data === undefined) return <Waiting error={error} onRetry={() => void refetch()} />;
  return (
    <>
      {administers && (
        <div><Button ref={trigger} size="small" onClick={() => setCreating(true)}><Plus aria-hidden />{keys.create}</Button></div>
      )}
      {data.total === 0 ? (
        <EmptyState icon={KeyRound} title={users.noKeys} />
      ) : (
        <ul className={styles["list"]} aria-label={users.keyList}>
          {data.rows.map((key) => (
            <li key={key.id} className={styles["key"]}>
              <span className={styles["person"]}>
                <span className={styles["name"]} title={key.description}>{key.description}</span>
                <span className={styles["muted"]}>
                  <code>{key.key_prefix}…</code> · {keys.lastUsed.toLowerCase()} {key.last_used === null ? keys.never.toLowerCase() : <Time at={key.last_used} as="relative" />}
                </span>
              </span>
              <Badge tone={key.status === "active" ? "success" : "neutral"}>{texts.keyStatusOf(key.status)}</Badge>
              <KeyActions apiKey={key} />
            </li>
          ))}
        </ul>
      )}
      <ListPager name={users.keyList} page={page} total={data.total} onPage={setPage} />
      <CreateKeyDialog
        open={creating} onClose={() => setCreating(false)} returnTo={trigger} serviceAccount={{ id: user.id, name: nameOf(user) }}
      />
    </>
  );
}
