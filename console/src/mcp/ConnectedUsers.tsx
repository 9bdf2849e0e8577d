import { X } from "lucide-react";
import { useRef, useState } from "react";
import { useRights } from "../api/queries";
import { ConnectionBadge } from "../connections/ConnectionBadge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Pager } from "../parts/Pager";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Server, type ServerConnection, useRemoveConnection, useServerConnections } from "./api";
import styles from "./mcp.module.css";

/** The users who have connected an account at a server. Administrators disconnect them. */
export function ConnectedUsers({ server }: { server: Server }) {
  const mcp = mcpTexts;
  const [page, setPage] = useState(1);
  const list = useServerConnections(server.id, page);
  return (
    <section aria-label={mcp.connected}>
      <h3 className={styles["heading"]}>{mcp.connected}</h3>
      {list.error && list.data === undefined ? (
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      ) : list.data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : list.data.total === 0 ? (
        <p className={styles["note"]}>{mcp.nobodyConnected}</p>
      ) : (
        <>
          <ul className={styles["people"]} aria-label={mcp.connected}>
            {list.data.rows.map((connection) => <Person key={connection.id} connection={connection} server={server} />)}
          </ul>
          {(page > 1 || list.data.total > PAGE_SIZE) && (
            <Pager name={mcp.connected} page={page} size={PAGE_SIZE} total={list.data.total} onPage={setPage} />
          )}
        </>
      )}
    </section>
  );
}

function Person({ connection, server }: { connection: ServerConnection; server: Server }) {
  const mcp = mcpTexts;
  const { administers } = useRights();
  const remove = useRemoveConnection();
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const { email, status, connected_at: at } = connection;
  return (
    <li className={styles["person"]}>
      <span className={styles["email"]} title={email}>{email}</span>
      <ConnectionBadge status={status} />
      <span className={styles["since"]}>{mcp.connectedSince} <Time at={at} as="date" /></span>
      {administers && (
        <Button ref={trigger} look="quiet" size="icon" aria-label={mcp.removeConnection(email)} onClick={() => setOpen(true)}><X aria-hidden /></Button>
      )}
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} title={mcp.removeConnectionTitle(email)} text={mcp.removeConnectionText(server.name)}
        action={mcp.disconnect} row={connection} run={(row) => remove.mutateAsync(row)} done={mcp.connectionRemoved(email)}
      />
    </li>
  );
}
