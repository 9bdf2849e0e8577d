-- sign_in ---------------------------------------------------------------------------------------------------------
-- The session that the cookie of a browser stands for.
CREATE TABLE browser_sessions (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX browser_sessions_session ON browser_sessions (session_id);
SELECT pg_temp.tenant_table('browser_sessions');

-- The URLs to which a client may redirect people, and whether the client cannot keep a secret (RFC 6749, 2.1).
ALTER TABLE oauth_clients
    ADD COLUMN redirect_uris jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN public boolean NOT NULL DEFAULT false;

-- An authorization code, and the access token that was issued for it. Both end with the session.
CREATE TABLE authorization_codes (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id uuid NOT NULL REFERENCES oauth_clients (client_id) ON DELETE CASCADE,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    nonce text,
    scope text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    access_digest bytea UNIQUE,
    access_expires_at timestamptz
);
CREATE INDEX authorization_codes_session ON authorization_codes (session_id);
CREATE INDEX authorization_codes_user ON authorization_codes (user_id);
CREATE INDEX authorization_codes_client ON authorization_codes (client_id);
CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);
SELECT pg_temp.tenant_table('authorization_codes');
GRANT DELETE ON authorization_codes TO gatehouse_service;
