-- The access type of a rule can be changed, so a rule has a version (docs/mcp.md).
ALTER TABLE mcp_access_rules ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();

-- Whether the user has replaced the connection by another one. Its tokens are revoked although the user is connected.
ALTER TABLE mcp_revocations ADD COLUMN replaced boolean NOT NULL DEFAULT false;
-- It is not known of the connections that wait now. Their first attempt is made in any case, as before.
UPDATE mcp_revocations SET replaced = true;
