-- figures ---------------------------------------------------------------------------------------------------------
-- Results of an organization's requests, by the minute in which they ended. The keeper adds to them.
CREATE TABLE usage_minutes (
    tenant_id uuid NOT NULL,
    minute timestamptz NOT NULL,
    requests bigint NOT NULL,
    errors bigint NOT NULL,
    blocked bigint NOT NULL,
    dlp_triggers bigint NOT NULL,
    cost_usd numeric NOT NULL,
    -- histogram of latencies: bucket * 2^32 + count; a bucket may occur several times (records/minutes/latency.py)
    latency bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, minute)
);
CREATE INDEX usage_minutes_age ON usage_minutes (minute);
-- Latencies by the hour, so that a week is not ten thousand arrays.
CREATE TABLE usage_hours (
    tenant_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    latency bigint[] NOT NULL,
    PRIMARY KEY (tenant_id, hour)
);
CREATE INDEX usage_hours_age ON usage_hours (hour);

-- Requests by model, routing policy and group, by the day (UTC) on which they arrived.
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

SELECT pg_temp.tenant_table(name)
FROM unnest(ARRAY['usage_minutes', 'usage_hours', 'routing_days']) AS name;
-- Only the keeper writes these totals, as it does the records.
REVOKE INSERT, UPDATE, DELETE ON usage_minutes, usage_hours, routing_days FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON usage_minutes, usage_hours, routing_days TO gatehouse_service;
