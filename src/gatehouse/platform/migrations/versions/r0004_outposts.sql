-- outposts --------------------------------------------------------------------------------------------------------
-- The outposts that the portal vouches for. It is one row, which is replaced as a whole. Certificates are in PEM.
-- Organizations map an organization's id to its tenant's id. Outposts have their organization, and the serial numbers
-- (hexadecimal) of their valid certificates.
CREATE TABLE outpost_trust (
    key text PRIMARY KEY CHECK (key = 'portal'),
    ca_certificates jsonb NOT NULL,
    organizations jsonb NOT NULL,
    outposts jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT, INSERT, UPDATE ON outpost_trust TO gatehouse_app;
GRANT SELECT ON outpost_trust TO gatehouse_service;
ALTER TABLE outpost_trust ENABLE ROW LEVEL SECURITY;
CREATE POLICY operators ON outpost_trust TO gatehouse_app
    USING (current_setting('gatehouse.operator', true) = 'on')
    WITH CHECK (current_setting('gatehouse.operator', true) = 'on');
CREATE POLICY service ON outpost_trust TO gatehouse_service USING (true);

-- The number of stored records of an outpost's journal. It advances in the transaction that stores the records.
CREATE TABLE outpost_positions (
    tenant_id uuid NOT NULL REFERENCES tenants,
    outpost_id uuid NOT NULL,
    -- an outpost that has lost its disk begins a new journal
    journal_id uuid NOT NULL,
    sequence bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, outpost_id, journal_id)
);
SELECT pg_temp.tenant_table('outpost_positions');
REVOKE INSERT, UPDATE, DELETE ON outpost_positions FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON outpost_positions TO gatehouse_service;

-- Outposts that have requested their policy, with the version that they reported as in force, and their certificate.
CREATE TABLE outpost_nodes (
    tenant_id uuid NOT NULL REFERENCES tenants,
    outpost_id uuid NOT NULL,
    version bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    certificate_serial text NOT NULL,
    certificate_ends timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, outpost_id)
);
SELECT pg_temp.tenant_table('outpost_nodes');
REVOKE INSERT, UPDATE, DELETE ON outpost_nodes FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON outpost_nodes TO gatehouse_service;

-- When each version came into force at an outpost, for the last day.
CREATE TABLE outpost_confirmations (
    tenant_id uuid NOT NULL REFERENCES tenants,
    outpost_id uuid NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, outpost_id, version)
);
CREATE INDEX outpost_confirmations_at ON outpost_confirmations (at);
SELECT pg_temp.tenant_table('outpost_confirmations');
REVOKE INSERT, UPDATE, DELETE ON outpost_confirmations FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON outpost_confirmations TO gatehouse_service;
