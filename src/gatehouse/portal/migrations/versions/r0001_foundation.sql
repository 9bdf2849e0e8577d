-- Earlier versions that are compatible with this schema (see foundation/storage/migrate.py).
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
    -- after this time another key signs, and this key is only published
    retired_at timestamptz,
    -- after this time the key is not published
    expires_at timestamptz
);
GRANT SELECT, INSERT, UPDATE, DELETE ON signing_keys TO gatehouse_service;

-- Grants rights on a table of organizations' rows and enables its row-level security. The service role may read; further
-- rights are granted after the table. `owner` is the column with the organization's id.
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
