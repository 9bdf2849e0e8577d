-- The accounts of users at MCP servers (docs/mcp.md). The gateway as an OAuth client that acts for each user; its secret
-- is in `sealed_client_secret`.
ALTER TABLE mcp_servers ADD COLUMN user_oauth jsonb;

CREATE TABLE mcp_connections (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    server_id uuid NOT NULL REFERENCES mcp_servers ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- the address for which the user has consented, and the endpoints of the authorization server
    server_url text NOT NULL,
    client_id text NOT NULL,
    issuer text,
    token_url text NOT NULL,
    revocation_url text,
    scope text,
    -- a sealed JSON object of access token and refresh token; null if the authorization server has ended the consent
    sealed_tokens text,
    -- when the access token expires and is renewed; null if it does not expire
    expires_at timestamptz,
    renew_at timestamptz,
    -- the lease of the worker that renews the tokens now
    renewing_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (server_id, user_id)
);
CREATE INDEX mcp_connections_of_tenant ON mcp_connections (tenant_id, server_id);
CREATE INDEX mcp_connections_of_user ON mcp_connections (user_id);
SELECT pg_temp.tenant_table('mcp_connections');

-- Consents that users have begun, one for each user and server
CREATE TABLE mcp_consents (
    server_id uuid NOT NULL REFERENCES mcp_servers ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- the SHA-256 digest of `state`
    state_digest bytea NOT NULL,
    -- what the user consents to: the address of the server, the client and the endpoints
    terms jsonb NOT NULL,
    -- the PKCE verifier
    sealed_verifier text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (server_id, user_id)
);
CREATE INDEX mcp_consents_of_tenant ON mcp_consents (tenant_id);
CREATE INDEX mcp_consents_of_user ON mcp_consents (user_id);
CREATE INDEX mcp_consents_of_session ON mcp_consents (session_id);
SELECT pg_temp.tenant_table('mcp_consents');
