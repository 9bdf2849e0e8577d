-- usage by model alias and deployment ---------------------------------------------------------------------------------
-- Results of the requests of model aliases, by the hour (UTC) in which they ended. The keeper adds to them.
CREATE TABLE alias_hours (
    tenant_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    model_alias text NOT NULL,
    -- the deployment; null if all failed or none was called. Timeouts have the deployment.
    provider text,
    model_id text,
    -- whether the requests are copies for a shadow
    shadow boolean NOT NULL,
    routing_policy_id text,
    group_id uuid,
    requests bigint NOT NULL,
    errors bigint NOT NULL,
    blocked bigint NOT NULL,
    dlp_triggers bigint NOT NULL,
    cost_usd numeric NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, hour, model_alias, provider, model_id, shadow, routing_policy_id, group_id)
);
CREATE INDEX alias_hours_age ON alias_hours (hour);

SELECT pg_temp.tenant_table('alias_hours');
-- Only the keeper writes these totals, as it does the records.
REVOKE INSERT, UPDATE, DELETE ON alias_hours FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON alias_hours TO gatehouse_service;
