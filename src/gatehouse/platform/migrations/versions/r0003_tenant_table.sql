-- The rights and the row-level security that every table with tenants' rows has. The service role can read. Its other
-- rights are granted next to each table.
CREATE FUNCTION pg_temp.tenant_table(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    condition constant text := $q$tenant_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid$q$;
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO gatehouse_app', name);
    EXECUTE format('GRANT SELECT ON %I TO gatehouse_service', name);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON %I TO gatehouse_app USING (%s) WITH CHECK (%s)', name, condition, condition);
    EXECUTE format('CREATE POLICY service ON %I TO gatehouse_service USING (true) WITH CHECK (true)', name);
END $$;
