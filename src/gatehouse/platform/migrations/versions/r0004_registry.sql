-- model registry --------------------------------------------------------------------------------------------------
-- What an organization asked of each model, by the day (UTC) in which the requests arrived: what the registry tells of
-- a model's use. The keeper adds to it.
CREATE TABLE model_days (
    tenant_id uuid NOT NULL,
    provider text NOT NULL,
    model_id text NOT NULL,
    day date NOT NULL,
    -- that the model answered, or began to
    requests bigint NOT NULL DEFAULT 0,
    -- tries that failed, and answers that broke off
    errors bigint NOT NULL DEFAULT 0,
    -- answers that DLP kept from the caller
    blocked bigint NOT NULL DEFAULT 0,
    -- requests for which the model was considered and the registry objected
    flagged bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric NOT NULL DEFAULT 0,
    -- when the model was called: null where it never was
    first_at timestamptz,
    last_at timestamptz,
    PRIMARY KEY (tenant_id, provider, model_id, day)
);
SELECT pg_temp.tenant_table('model_days');
-- Figures are the keeper's alone to write, as the records are.
REVOKE INSERT, UPDATE, DELETE ON model_days FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON model_days TO gatehouse_service;

-- What was called before is known to the day.
INSERT INTO model_days (tenant_id, provider, model_id, day, requests, first_at, last_at)
SELECT tenant_id, provider, model_id, day, sum(records), day::timestamp AT TIME ZONE 'UTC', day::timestamp AT TIME ZONE 'UTC'
FROM usage_counts WHERE provider IS NOT NULL AND model_id IS NOT NULL GROUP BY tenant_id, provider, model_id, day;
