/** The fields of the form of a server, and their conversion to request bodies. */
import type { NewServer, Server, ServerUpdate } from "./api";

/** The kinds of credentials that the gateway can present to a server. */
export const CREDENTIALS = ["none", "header", "oauth", "user_oauth"] as const;
export type Credential = (typeof CREDENTIALS)[number];
export type ClientAuthentication = "client_secret_basic" | "client_secret_post";

interface ClientFields {
  client_id: string;
  client_secret: string;
  scope: string;
  client_authentication: ClientAuthentication;
  sends_resource: boolean;
}

export interface ServerFields {
  name: string;
  description: string;
  /** A server cannot change from one to the other. */
  transport: "url" | "stdio";
  url: string;
  stdio: {
    /** The name of a command; empty leaves the stored command with the values of its variables. */
    command: string;
    /** The values by variable. */
    environment: Record<string, string>;
  };
  access: Server["access"];
  timeout_ms: string;
  /** `keep` leaves the stored credential as it is. */
  credential: Credential | "keep";
  header: { name: string; value: string };
  oauth: ClientFields & { token_url: string };
  user_oauth: ClientFields & { issuer: string; authorization_url: string; token_url: string; revocation_url: string };
}

/** Returns the kind of the stored credential. */
export function credentialOf(server: Server): Credential {
  if (server.user_oauth !== null) return "user_oauth";
  if (server.oauth !== null) return "oauth";
  return server.header_name !== null ? "header" : "none";
}

export function fieldsOf(server: Server | undefined): ServerFields {
  const isKept = server !== undefined && credentialOf(server) !== "none";
  const { oauth, user_oauth: userOAuth } = server ?? {};
  return {
    name: server?.name ?? "",
    description: server?.description ?? "",
    transport: server !== undefined && server.stdio !== null ? "stdio" : "url",
    url: server?.url ?? "",
    stdio: { command: "", environment: {} },
    access: server?.access ?? "restricted",
    timeout_ms: String(server?.timeout_ms ?? 30_000),
    credential: isKept ? "keep" : "none",
    header: { name: server?.header_name ?? "Authorization", value: "" },
    oauth: { ...clientOf(oauth), token_url: oauth?.token_url ?? "" },
    user_oauth: {
      ...clientOf(userOAuth),
      issuer: userOAuth?.issuer ?? "",
      authorization_url: userOAuth?.authorization_url ?? "",
      token_url: userOAuth?.token_url ?? "",
      revocation_url: userOAuth?.revocation_url ?? "",
    },
  };
}

function clientOf(client: Server["oauth"] | Server["user_oauth"] | undefined): ClientFields {
  return {
    client_id: client?.client_id ?? "",
    client_secret: "",
    scope: client?.scope ?? "",
    client_authentication: client?.client_authentication ?? "client_secret_basic",
    sends_resource: client?.sends_resource ?? true,
  };
}

/** Returns the body that creates the server, or replaces its fields. Without a credential, all kinds are removed. */
export function bodyOf(fields: ServerFields): Omit<NewServer, "enabled"> & ServerUpdate {
  const { credential, header, oauth, user_oauth: userOAuth, description, timeout_ms: timeout, transport, url, stdio, ...rest } = fields;
  const body = { ...rest, description: description || null, timeout_ms: Number(timeout) };
  if (transport === "stdio") {
    const set = Object.entries(stdio.environment).filter(([, value]) => value !== "");
    return { ...body, ...(stdio.command !== "" && { stdio: { command: stdio.command, environment: Object.fromEntries(set) } }) };
  }
  return {
    ...body,
    url,
    ...(credential !== "keep" && {
      header: credential === "header" ? header : null,
      oauth: credential === "oauth" ? { ...oauth, scope: oauth.scope || null } : null,
      user_oauth: credential === "user_oauth" ? {
        ...userOAuth,
        client_secret: userOAuth.client_secret || null,
        scope: userOAuth.scope || null,
        issuer: userOAuth.issuer || null,
        authorization_url: userOAuth.authorization_url || null,
        token_url: userOAuth.token_url || null,
        revocation_url: userOAuth.revocation_url || null,
      } : null,
    }),
  };
}
