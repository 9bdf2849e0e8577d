-- Versions older than this schema that still serve on it (see foundation/storage/migrate.py).
CREATE TABLE schema_compatibility (serves text[] NOT NULL);
INSERT INTO schema_compatibility VALUES ('{}');
GRANT USAGE ON SCHEMA portal TO gatehouse_app, gatehouse_service;
GRANT SELECT ON schema_compatibility, alembic_version TO gatehouse_app, gatehouse_service;

-- The keys of the portal's tokens.
CREATE TABLE signing_keys (
    kid text PRIMARY KEY,
    public_jwk jsonb NOT NULL,
    sealed_private text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- from then on another key signs, and this one is only published
    retired_at timestamptz,
    -- from then on it is not published
    expires_at timestamptz
);
GRANT SELECT, INSERT, UPDATE, DELETE ON signing_keys TO gatehouse_service;

-- The rights and the row-level security that every table of organizations' rows has. The service role reads; what else
-- it may do is granted beside the table. Two arguments: where the organization's id stands.
CREATE FUNCTION pg_temp.org_table(name text, owner text DEFAULT 'org_id') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    condition constant text :=
        format($q$%I = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid$q$, owner);
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO gatehouse_app', name);
    EXECUTE format('GRANT SELECT ON %I TO gatehouse_service', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY organization ON %I TO gatehouse_app USING (%s) WITH CHECK (%s)',
                   name, condition, condition);
    EXECUTE format('CREATE POLICY service ON %I TO gatehouse_service USING (true) WITH CHECK (true)', name);
END $$;
