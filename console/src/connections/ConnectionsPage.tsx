import { Link } from "@tanstack/react-router";
import { Link2 } from "lucide-react";
import { useRef, useState } from "react";
import { Button, buttonClass } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { type Column, DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { connectionTexts } from "../texts/connections";
import { type OwnConnection, useConnections, useDisconnect } from "./api";
import { ConnectionBadge } from "./ConnectionBadge";
import styles from "./ConnectionsPage.module.css";

/** The MCP servers that need the user's account, with the state of each connection. A user connects on a page of the
 * sign-in, which leads back here. A server that the user cannot use is listed while there is a connection. */
export function ConnectionsPage() {
  const list = useConnections();
  return (
    <Page title={connectionTexts.title}>
      <p className={styles["text"]}>{connectionTexts.text}</p>
      <Panel label={connectionTexts.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={Link2} title={connectionTexts.empty} text={connectionTexts.emptyText}>
            <Link to="/tools" className={buttonClass()}>{connectionTexts.toTools}</Link>
          </EmptyState>
        ) : (
          <DataTable label={connectionTexts.title} columns={COLUMNS} rows={list.data} rowId={(connection) => connection.server_id} />
        )}
      </Panel>
    </Page>
  );
}

const COLUMNS: Column<OwnConnection>[] = [
  {
    id: "server", header: connectionTexts.server, meta: { width: "30%" },
    cell: ({ row }) => <span className={styles["server"]} title={row.original.server}>{row.original.server}</span>,
  },
  { id: "status", header: connectionTexts.status, cell: ({ row: { original: { status, available } } }) => <ConnectionBadge status={status} available={available} /> },
  { id: "scope", header: connectionTexts.scope, meta: { hideBelow: "desk" }, cell: ({ row: { original: { status, scope } } }) => status !== "not_connected" && (scope ?? connectionTexts.unknownScope) },
  {
    id: "since", header: connectionTexts.since, meta: { hideBelow: "tablet" },
    cell: ({ row: { original: { connected_at: at } } }) => (at === null ? connectionTexts.never : <Time at={at} as="relative" />),
  },
  { id: "actions", header: texts.actions, meta: { align: "end" }, cell: ({ row }) => <Actions connection={row.original} /> },
];

function Actions({ connection: { server, server_id: id, status, available, connect_url: url } }: { connection: OwnConnection }) {
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const disconnect = useDisconnect();
  const close = () => setOpen(false);
  return (
    <span className={styles["actions"]}>
      {available && status !== "connected" && (
        <a className={buttonClass(status === "ended" ? "primary" : "plain", "small")} href={url} aria-label={status === "ended" ? connectionTexts.connectAgainTo(server) : connectionTexts.connectTo(server)}>
          {status === "ended" ? connectionTexts.connectAgain : connectionTexts.connect}
        </a>
      )}
      {status !== "not_connected" && (
        <Button ref={trigger} size="small" aria-label={connectionTexts.disconnectFrom(server)} onClick={() => setOpen(true)}>{connectionTexts.disconnect}</Button>
      )}
      <ConfirmDialog
        open={open} onClose={close} returnTo={trigger} title={connectionTexts.disconnectTitle(server)} text={connectionTexts.disconnectText}
        action={connectionTexts.disconnect} run={() => disconnect.mutateAsync(id)} done={connectionTexts.disconnected(server)}
      />
    </span>
  );
}
