-- outposts --------------------------------------------------------------------------------------------------------
-- The private authorities. One issues certificates. Earlier ones are trusted while their certificates may be valid.
CREATE TABLE authorities (
    id uuid PRIMARY KEY,
    certificate text NOT NULL,
    sealed_private text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- after this time another authority issues certificates
    retired_at timestamptz,
    -- after this time its certificates are not trusted
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
    -- the newest certificate of the outpost; the serial number is in hexadecimal
    cert_serial text NOT NULL,
    cert_issued_at timestamptz NOT NULL,
    cert_expires_at timestamptz NOT NULL,
    -- time and content of the last heartbeat
    last_seen_at timestamptz,
    reported jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);
-- The name of a revoked outpost may be used again.
CREATE UNIQUE INDEX outposts_name ON outposts (org_id, outpost_name) WHERE revoked_at IS NULL;
CREATE INDEX outposts_seen ON outposts (coalesce(last_seen_at, created_at)) WHERE revoked_at IS NULL;
SELECT pg_temp.org_table('outposts');
REVOKE DELETE ON outposts FROM gatehouse_app;

-- All issued certificates. A certificate that was replaced is valid for some more time.
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
