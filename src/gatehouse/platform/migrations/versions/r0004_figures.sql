-- figures ---------------------------------------------------------------------------------------------------------
-- What came of an organization's requests, by the minute in which they ended. The keeper adds to it.
CREATE TABLE usage_minutes (
    tenant_id uuid NOT NULL,
    minute timestamptz NOT NULL,
    requests bigint NOT NULL,
    errors bigint NOT NULL,
    blocked bigint NOT NULL,
    dlp_triggers bigint NOT NULL,
    cost_usd numeric NOT NULL,
    -- how many requests took how long: bucket * 2^32 + count, a bucket any number of times (records/minutes/latency.py)
    latency bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, minute)
);
CREATE INDEX usage_minutes_age ON usage_minutes (minute);
-- Latencies by the hour, so that a week's are not ten thousand arrays.
CREATE TABLE usage_hours (
    tenant_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    latency bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, hour)
);
CREATE INDEX usage_hours_age ON usage_hours (hour);

-- What was asked of which model, under which routing policy and for which group, by the day (UTC) in which the requests
-- arrived.
CREATE TABLE routing_days (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    provider text,
    model_id text,
    routing_policy_id text,
    group_id uuid,
    requests bigint NOT NULL,
    cost_usd numeric NOT NULL,
    -- requests whose first candidate did not answer
    fallbacks bigint NOT NULL,
    -- requests refused by a policy's cost cap
    cost_cap_blocks bigint NOT NULL,
    cache_hits bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, provider, model_id, routing_policy_id, group_id)
);

-- usage_counts without users: a list of everybody's records adds up some hundred rows, not one for each user, model and
-- day. Kept by triggers, whoever changes the counts.
CREATE TABLE usage_totals (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, group_id, provider, model_id)
);
INSERT INTO usage_totals SELECT tenant_id, day, group_id, provider, model_id, sum(records) FROM usage_counts
GROUP BY tenant_id, day, group_id, provider, model_id;
CREATE FUNCTION gatehouse_total_usage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- In order: two statements that change the same totals must not wait for each other.
    EXECUTE format(
        'INSERT INTO usage_totals AS held'
        ' SELECT tenant_id, day, group_id, provider, model_id, sum(records) FROM (%s) changed'
        ' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 ON CONFLICT (tenant_id, day, group_id, provider, model_id)'
        ' DO UPDATE SET records = held.records + excluded.records',
        concat_ws(' UNION ALL ',
            CASE WHEN TG_OP <> 'DELETE'
                THEN 'SELECT tenant_id, day, group_id, provider, model_id, records FROM added' END,
            CASE WHEN TG_OP <> 'INSERT'
                THEN 'SELECT tenant_id, day, group_id, provider, model_id, -records AS records FROM gone' END));
    RETURN NULL;
END $$;
CREATE TRIGGER totalled_insert AFTER INSERT ON usage_counts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_total_usage();
CREATE TRIGGER totalled_update AFTER UPDATE ON usage_counts REFERENCING NEW TABLE AS added OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_total_usage();
CREATE TRIGGER totalled_delete AFTER DELETE ON usage_counts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_total_usage();

SELECT pg_temp.tenant_table(name)
FROM unnest(ARRAY['usage_minutes', 'usage_hours', 'routing_days', 'usage_totals']) AS name;
-- Figures are the keeper's alone to write, as the records are.
REVOKE INSERT, UPDATE, DELETE ON usage_minutes, usage_hours, routing_days, usage_totals FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON usage_minutes, usage_hours, routing_days TO gatehouse_service;
