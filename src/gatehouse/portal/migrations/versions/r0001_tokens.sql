-- organization tokens ---------------------------------------------------------------------------------------------
-- Revoked tokens that have not expired yet.
CREATE TABLE revoked_tokens (
    org_id uuid NOT NULL REFERENCES organizations,
    jti text NOT NULL,
    reason text NOT NULL,
    revoked_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, jti)
);
SELECT pg_temp.org_table('revoked_tokens');
GRANT DELETE ON revoked_tokens TO gatehouse_service;
