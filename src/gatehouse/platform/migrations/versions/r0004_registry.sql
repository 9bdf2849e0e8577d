-- model registry --------------------------------------------------------------------------------------------------
-- An organization's requests to each model, by the day (UTC) on which they arrived. The model registry shows them as
-- the use of a model. The keeper adds to them.
CREATE TABLE model_days (
    tenant_id uuid NOT NULL,
    provider text NOT NULL,
    model_id text NOT NULL,
    day date NOT NULL,
    -- requests that the model answered, or began to answer
    requests bigint NOT NULL DEFAULT 0,
    -- failed attempts, and answers that ended early
    errors bigint NOT NULL DEFAULT 0,
    -- answers that DLP withheld from the caller
    blocked bigint NOT NULL DEFAULT 0,
    -- requests for which the model was considered and the registry objected
    flagged bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric NOT NULL DEFAULT 0,
    -- when the model was called; null if it was never called
    first_at timestamptz,
    last_at timestamptz,
    PRIMARY KEY (tenant_id, provider, model_id, day)
);
SELECT pg_temp.tenant_table('model_days');
-- Only the keeper writes these totals, as it does the records.
REVOKE INSERT, UPDATE, DELETE ON model_days FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON model_days TO gatehouse_service;

-- Earlier calls are known only by the day.
INSERT INTO model_days (tenant_id, provider, model_id, day, requests, first_at, last_at)
SELECT tenant_id, provider, model_id, day, sum(records), day::timestamp AT TIME ZONE 'UTC', day::timestamp AT TIME ZONE 'UTC'
FROM usage_counts WHERE provider IS NOT NULL AND model_id IS NOT NULL GROUP BY tenant_id, provider, model_id, day;
