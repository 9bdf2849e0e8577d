import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { useUserName } from "../api/users";
import { Dialog } from "../parts/Dialog";
import { Fact, Facts } from "../parts/Facts";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { oauthTexts } from "../texts/oauth";
import type { OAuthClient } from "./api";
import styles from "./ClientForm.module.css";

const SECONDS_PER_MINUTE = 60;

/** A client by its public id. The page needs it if the URL refers to a client that is not on the loaded page of the list. */
export function useClient(clientId: string | undefined) {
  return useQuery({
    queryKey: ["oauth-clients", "one", clientId],
    enabled: clientId !== undefined,
    queryFn: () => dataOf(api.GET("/api/admin/oauth-clients/{client_id}", { params: { path: { client_id: clientId ?? "" } } })),
  });
}

/** All settings of a client, for reading. */
export function ClientDetails({ client, onClose }: { client: OAuthClient | undefined; onClose: () => void }) {
  return (
    <Dialog open={client !== undefined} onClose={onClose} title={client === undefined ? "" : oauthTexts.detailsOf(client.name)} wide>
      {client !== undefined && <Details client={client} />}
    </Dialog>
  );
}

function Details({ client }: { client: OAuthClient }) {
  const oauth = oauthTexts;
  const creator = useUserName(client.created_by);
  return (
    <Facts>
      <Fact name={oauth.clientId}><code>{client.client_id}</code></Fact>
      <Fact name={texts.rules.status}>{client.enabled ? texts.rules.enabled : texts.rules.disabled}</Fact>
      <Fact name={oauth.scopes}><Lines lines={client.scopes} /></Fact>
      <Fact name={oauth.tier}>{oauth.tiers[client.rate_limit_tier]}</Fact>
      <Fact name={oauth.lifetime}>{(client.token_lifetime_seconds / SECONDS_PER_MINUTE).toLocaleString("en")}</Fact>
      <Fact name={oauth.platformWide}>{client.tenant_id === null ? oauth.yes : oauth.no}</Fact>
      <Fact name={oauth.redirects}><Lines lines={client.redirect_uris} /></Fact>
      <Fact name={oauth.userScopes}><Lines lines={client.user_scopes} /></Fact>
      <Fact name={oauth.public}>{client.public ? oauth.yes : oauth.no}</Fact>
      <Fact name={oauth.created}><Time at={client.created_at} />{creator !== null && <span>{oauth.by(creator)}</span>}</Fact>
      <Fact name={oauth.changed}><Time at={client.updated_at} /></Fact>
    </Facts>
  );
}

/** Values below each other, or a dash if there are none. */
function Lines({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return texts.none;
  return <ul className={styles["lines"]}>{lines.map((line) => <li key={line}><code>{line}</code></li>)}</ul>;
}
