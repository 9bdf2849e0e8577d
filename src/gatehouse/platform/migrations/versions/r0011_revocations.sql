-- Tokens of removed connections, until the authorization server has revoked them (docs/mcp.md). User and server may be
-- deleted, so a row has all that the request needs.
CREATE TABLE mcp_revocations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id uuid NOT NULL REFERENCES tenants,
    server_id uuid NOT NULL,
    user_id uuid NOT NULL,
    server text NOT NULL,
    server_url text NOT NULL,
    -- the client to which the tokens were issued
    user_oauth jsonb NOT NULL,
    sealed_client_secret text,
    revocation_url text NOT NULL,
    sealed_tokens text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX mcp_revocations_due ON mcp_revocations (due_at);
CREATE INDEX mcp_revocations_of_tenant ON mcp_revocations (tenant_id);
SELECT pg_temp.tenant_table('mcp_revocations');
GRANT UPDATE ON mcp_revocations TO gatehouse_service;

-- A trigger, so that no way of removing a connection can omit the revocation. The rows of an organization are limited,
-- because users choose how often they connect again. The server's present client must be that of the tokens: remove
-- connections before the client is changed or the server is deleted.
CREATE FUNCTION gatehouse_queue_revocations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp_revocations (
        tenant_id, server_id, user_id, server, server_url, user_oauth, sealed_client_secret, revocation_url,
        sealed_tokens
    )
    SELECT r.tenant_id, r.server_id, r.user_id, s.name, r.server_url, s.user_oauth, s.sealed_client_secret,
        r.revocation_url, r.sealed_tokens
    FROM removed r JOIN mcp_servers s ON s.id = r.server_id
    WHERE r.revocation_url IS NOT NULL AND r.sealed_tokens IS NOT NULL AND s.user_oauth ->> 'client_id' = r.client_id
    LIMIT greatest(
        0, 10000 - (SELECT count(*) FROM mcp_revocations q WHERE q.tenant_id = (SELECT tenant_id FROM removed LIMIT 1))
    );
    RETURN NULL;
END $$;
CREATE TRIGGER revoked AFTER DELETE ON mcp_connections REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_queue_revocations();
