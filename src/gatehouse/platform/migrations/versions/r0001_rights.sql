-- The rights of each role. The application's role sees one tenant at a time. The service role sees all tenants, and
-- writes only records and bookkeeping.
GRANT USAGE ON SCHEMA public TO gatehouse_app, gatehouse_service;

GRANT SELECT, INSERT, UPDATE, DELETE ON
    tenants, allowed_domains, system_config, users, one_time_tokens, sessions, refresh_tokens, api_keys,
    oauth_clients, providers, model_configs, platform_state
    TO gatehouse_app;
-- It adds rows and extends them, and never deletes one.
GRANT SELECT (subject, expires_at), INSERT, UPDATE (expires_at) ON revocations TO gatehouse_app;
-- Administration never changes records.
GRANT SELECT, INSERT ON audit_events, outbox, changes TO gatehouse_app;
GRANT SELECT ON usage_records, usage_counts, dlp_events, dlp_event_counts, nodes, revision_head TO gatehouse_app;
GRANT SELECT, INSERT, UPDATE ON audit_heads TO gatehouse_app;
GRANT UPDATE ON revision_head TO gatehouse_app;
GRANT SELECT ON schema_compatibility, alembic_version TO gatehouse_app, gatehouse_service;

GRANT SELECT ON ALL TABLES IN SCHEMA public TO gatehouse_service;
GRANT INSERT ON audit_events, usage_records, dlp_events, changes TO gatehouse_service;
GRANT INSERT, UPDATE ON audit_heads, usage_counts TO gatehouse_service;
GRANT INSERT, UPDATE, DELETE ON
    journal_positions, open_streams, nodes, revocations, signing_keys, outbox, changes, revision_head, platform_state
    TO gatehouse_service;
-- The sign-in works across tenants, and must record its results.
GRANT UPDATE (last_login_at, password_hash) ON users TO gatehouse_service;
GRANT UPDATE (last_used) ON api_keys TO gatehouse_service;
GRANT UPDATE (last_used) ON oauth_clients TO gatehouse_service;
GRANT UPDATE (health_check_status, last_health_check, health_error, health_latency_ms, unhealthy,
              consecutive_failures, consecutive_successes) ON providers TO gatehouse_service;
GRANT DELETE ON one_time_tokens, sessions, refresh_tokens TO gatehouse_service;
DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO gatehouse_service', current_database()); END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_ensure_partitions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_ensure_partitions TO gatehouse_service;

GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO gatehouse_app, gatehouse_service;

DO $$
DECLARE
    name text;
    mine constant text := $q$NULLIF(current_setting('gatehouse.tenant', true), '')::uuid$q$;
    operator constant text := $q$current_setting('gatehouse.operator', true) = 'on'$q$;
    condition text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'tenants', 'allowed_domains', 'system_config', 'users', 'one_time_tokens', 'sessions', 'refresh_tokens',
        'api_keys', 'oauth_clients', 'providers', 'model_configs', 'audit_heads', 'audit_events', 'usage_records',
        'usage_counts', 'dlp_events', 'dlp_event_counts', 'outbox'] LOOP
        condition := CASE name
            WHEN 'tenants' THEN format('id = %s OR %s', mine, operator)
            WHEN 'oauth_clients' THEN format('tenant_id = %s OR %s', mine, operator)
            ELSE format('tenant_id = %s', mine)
        END;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO gatehouse_app USING (%s) WITH CHECK (%s)',
                       name, condition, condition);
        EXECUTE format('CREATE POLICY service ON %I TO gatehouse_service USING (true) WITH CHECK (true)', name);
    END LOOP;
    -- The owner migrates and backs up the database. It is not restricted, because it never serves a request. No policy
    -- names the owner, so that a backup can be restored where the owner has another name.

    -- A change may belong to another tenant, if an operator made it. Only the tenant's own changes are visible.
    ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
    EXECUTE format('CREATE POLICY tenant ON changes FOR SELECT TO gatehouse_app USING (tenant_id = %s)', mine);
    CREATE POLICY adding ON changes FOR INSERT TO gatehouse_app WITH CHECK (true);
    CREATE POLICY service ON changes TO gatehouse_service USING (true) WITH CHECK (true);
    -- The platform's state applies to all tenants. Operators change it.
    ALTER TABLE platform_state ENABLE ROW LEVEL SECURITY;
    CREATE POLICY reading ON platform_state FOR SELECT TO gatehouse_app USING (true);
    EXECUTE format('CREATE POLICY operators ON platform_state TO gatehouse_app USING (%s) WITH CHECK (%s)',
                   operator, operator);
    CREATE POLICY service ON platform_state TO gatehouse_service USING (true) WITH CHECK (true);
END $$;
