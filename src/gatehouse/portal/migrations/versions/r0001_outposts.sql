-- outposts --------------------------------------------------------------------------------------------------------
-- The private authorities: one issues, those before it are trusted as long as something of theirs can be good.
CREATE TABLE authorities (
    id uuid PRIMARY KEY,
    certificate text NOT NULL,
    sealed_private text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- from then on another one issues
    retired_at timestamptz,
    -- from then on nothing that it has issued is believed
    trusted_until timestamptz NOT NULL
);
CREATE UNIQUE INDEX authorities_issuing ON authorities ((true)) WHERE retired_at IS NULL;
GRANT SELECT ON authorities TO gatehouse_service;

CREATE TABLE outposts (
    id uuid PRIMARY KEY,
    org_id uuid NOT NULL REFERENCES organizations,
    outpost_name text NOT NULL,
    region text NOT NULL,
    deployment_env text NOT NULL,
    -- of its newest certificate; the serial in hexadecimal
    cert_serial text NOT NULL,
    cert_issued_at timestamptz NOT NULL,
    cert_expires_at timestamptz NOT NULL,
    -- its last heartbeat, and what it said of itself
    last_seen_at timestamptz,
    reported jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
-- A revoked one's name is free again.
CREATE UNIQUE INDEX outposts_name ON outposts (org_id, outpost_name) WHERE revoked_at IS NULL;
CREATE INDEX outposts_seen ON outposts (coalesce(last_seen_at, created_at)) WHERE revoked_at IS NULL;
SELECT pg_temp.org_table('outposts');
REVOKE DELETE ON outposts FROM gatehouse_app;

-- Every certificate that was issued. One that another has replaced is good for a while yet.
CREATE TABLE outpost_certificates (
    serial text PRIMARY KEY,
    org_id uuid NOT NULL REFERENCES organizations,
    outpost_id uuid NOT NULL REFERENCES outposts,
    authority_id uuid NOT NULL REFERENCES authorities,
    issued_at timestamptz NOT NULL,
    good_until timestamptz NOT NULL
);
CREATE INDEX outpost_certificates_of ON outpost_certificates (outpost_id, issued_at DESC);
SELECT pg_temp.org_table('outpost_certificates');
REVOKE DELETE ON outpost_certificates FROM gatehouse_app;
