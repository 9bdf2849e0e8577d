/** The fields of the form of a server, and their conversion to request bodies. */
import type { NewServer, Server, ServerUpdate } from "./api";

/** The kinds of credentials that the gateway can present to a server. */
export const CREDENTIALS = ["none", "header", "oauth"] as const;
export type Credential = (typeof CREDENTIALS)[number];

export interface ServerFields {
  name: string;
  description: string;
  url: string;
  access: Server["access"];
  timeout_ms: string;
  /** `keep` leaves the stored credential as it is. */
  credential: Credential | "keep";
  header: { name: string; value: string };
  oauth: {
    token_url: string;
    client_id: string;
    client_secret: string;
    scope: string;
    client_authentication: "client_secret_basic" | "client_secret_post";
    sends_resource: boolean;
  };
}

/** Returns the kind of the stored credential. */
export function credentialOf(server: Server): Credential {
  if (server.oauth !== null) return "oauth";
  return server.header_name !== null ? "header" : "none";
}

export function fieldsOf(server: Server | undefined): ServerFields {
  const isKept = server !== undefined && credentialOf(server) !== "none";
  return {
    name: server?.name ?? "",
    description: server?.description ?? "",
    url: server?.url ?? "",
    access: server?.access ?? "restricted",
    timeout_ms: String(server?.timeout_ms ?? 30_000),
    credential: isKept ? "keep" : "none",
    header: { name: server?.header_name ?? "Authorization", value: "" },
    oauth: {
      token_url: server?.oauth?.token_url ?? "",
      client_id: server?.oauth?.client_id ?? "",
      client_secret: "",
      scope: server?.oauth?.scope ?? "",
      client_authentication: server?.oauth?.client_authentication ?? "client_secret_basic",
      sends_resource: server?.oauth?.sends_resource ?? true,
    },
  };
}

/** Returns the body that creates the server, or replaces its fields. Without a credential, both kinds are removed. */
export function bodyOf(fields: ServerFields): Omit<NewServer, "enabled"> & ServerUpdate {
  const { credential, header, oauth, description, timeout_ms: timeout, ...rest } = fields;
  return {
    ...rest,
    description: description || null,
    timeout_ms: Number(timeout),
    ...(credential !== "keep" && {
      header: credential === "header" ? header : null,
      oauth: credential === "oauth" ? { ...oauth, scope: oauth.scope || null } : null,
    }),
  };
}
