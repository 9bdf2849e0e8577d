import { Link } from "@tanstack/react-router";
import { RefreshCw } from "lucide-react";
import { useRights } from "../api/queries";
import { Button, buttonClass } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { switchTexts } from "../texts/switches";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { type Server, useServer } from "./api";
import { ConnectedUsers } from "./ConnectedUsers";
import styles from "./mcp.module.css";
import { credentialOf } from "./server-fields";
import { ServerState, useReadTools } from "./ServersPage";

/** The details of the server with this id. */
export function ServerDialog({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  const server = useServer(id);
  return (
    <Dialog open={id !== undefined} onClose={onClose} title={server.data?.name ?? mcpTexts.server} text={server.data?.description ?? undefined} wide>
      {server.error && server.data === undefined ? (
        <ErrorState error={server.error} onRetry={() => void server.refetch()} />
      ) : server.data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : (
        <Details server={server.data} />
      )}
    </Dialog>
  );
}

function Details({ server }: { server: Server }) {
  const mcp = mcpTexts;
  const { administers } = useRights();
  const read = useReadTools(server);
  const software = [server.server_info["name"], server.server_info["version"]].filter((part) => typeof part === "string").join(" ");
  return (
    <>
      <div className={styles["facts"]}><Facts>
        <Fact name={mcp.status}>
          <ServerState server={server} />
          {server.switched_off_at !== null && (
            <span>{server.switched_off_reason !== null && switchTexts.reasons[server.switched_off_reason]}, <Time at={server.switched_off_at} as="relative" /></span>
          )}
        </Fact>
        <Fact name={server.url === null ? mcp.command : mcp.url}><code>{server.url ?? server.stdio?.command}</code></Fact>
        <Fact name={mcp.endpoint}><code>{`${location.origin}/mcp/${server.name}`}</code></Fact>
        <Fact name={mcp.access}>{mcp.accesses[server.access]}</Fact>
        <Fact name={mcp.credential}>{mcp.credentials[credentialOf(server)]}{server.header_name !== null && <code>{server.header_name}</code>}{server.oauth !== null && <code>{server.oauth.client_id}</code>}{server.user_oauth !== null && <code>{server.user_oauth.client_id}</code>}</Fact>
        {server.user_oauth?.issuer != null && <Fact name={mcp.issuer}><code>{server.user_oauth.issuer}</code></Fact>}
        {server.stdio !== null && server.stdio.environment.length > 0 && <Fact name={mcp.variables}><code>{server.stdio.environment.join(", ")}</code></Fact>}
        <Fact name={mcp.timeout}>{server.timeout_ms.toLocaleString("en")}</Fact>
        <Fact name={mcp.readAt}>{server.refreshed_at === null ? mcp.never : <Time at={server.refreshed_at} />}</Fact>
        {server.revision !== null && <Fact name={mcp.revision}>{server.revision}</Fact>}
        {software !== "" && <Fact name={mcp.software}>{software}</Fact>}
      </Facts></div>
      {server.faults.length > 0 && (
        <section className={styles["faults"]} aria-label={mcp.faults}>
          <h3>{mcp.faults}</h3>
          <ul>{server.faults.map((fault) => <li key={fault}>{fault}</li>)}</ul>
        </section>
      )}
      {server.user_oauth !== null && <ConnectedUsers server={server} />}
      <DialogActions>
        <Link to="/mcp-servers/calls" search={{ server: server.id }} className={buttonClass()}>{mcp.showCalls}</Link>
        <Link to="/mcp-servers/access" search={{ server: server.id }} className={buttonClass()}>{mcp.showAccess}</Link>
        <Link to="/mcp-servers/tools" search={{ server: server.id }} className={buttonClass()}>{mcp.showTools}</Link>
        {administers && <Button look="primary" busy={read.busy} onClick={read.run}><RefreshCw aria-hidden />{mcp.read}</Button>}
      </DialogActions>
    </>
  );
}
