-- outposts --------------------------------------------------------------------------------------------------------
-- Whom the portal vouches for: one row, replaced whole. Certificates are PEM; organizations are tenants' ids by
-- organization; outposts have their organization, and the serial numbers (hexadecimal) of certificates that are good.
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

-- How many records of an outpost's journal are stored; moved in the transaction that stores them.
CREATE TABLE outpost_positions (
    tenant_id uuid NOT NULL REFERENCES tenants,
    outpost_id uuid NOT NULL,
    -- an outpost that has lost its disk begins another
    journal_id uuid NOT NULL,
    sequence bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, outpost_id, journal_id)
);
SELECT pg_temp.tenant_table('outpost_positions');
REVOKE INSERT, UPDATE, DELETE ON outpost_positions FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON outpost_positions TO gatehouse_service;

-- Each outpost that has asked for its policy: the version that it said to have in force, and its certificate.
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

-- When each version was in force there: of the last day.
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
