-- The cost of each API key by month (UTC), for the list of keys that is sorted by it. Keys without cost have no row.
CREATE TABLE spend_key_months (
    tenant_id uuid NOT NULL,
    month date NOT NULL,
    api_key_id uuid NOT NULL,
    cost_usd numeric NOT NULL,
    PRIMARY KEY (tenant_id, month, api_key_id)
);
CREATE INDEX spend_key_months_cost ON spend_key_months (tenant_id, month, cost_usd, api_key_id);

-- As in the earlier revision, with `spend_key_months`.
CREATE OR REPLACE FUNCTION gatehouse_fold_spend() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(7411998) THEN
        RETURN 0;
    END IF;
    WITH deltas AS (
        DELETE FROM spend_deltas RETURNING *
    ), folded AS (
        INSERT INTO spend_days AS target
        SELECT tenant_id, day, group_id, user_id, api_key_id, sum(requests), sum(input_tokens), sum(output_tokens),
               sum(cached_tokens), sum(cost_usd), sum(records) FROM deltas
        GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (tenant_id, day, group_id, user_id, api_key_id) DO UPDATE SET
            requests = target.requests + excluded.requests, input_tokens = target.input_tokens + excluded.input_tokens,
            output_tokens = target.output_tokens + excluded.output_tokens,
            cached_tokens = target.cached_tokens + excluded.cached_tokens,
            cost_usd = target.cost_usd + excluded.cost_usd, records = target.records + excluded.records
    ), folded_by_key AS (
        INSERT INTO spend_key_months AS target
        SELECT tenant_id, date_trunc('month', day)::date, api_key_id, sum(cost_usd) FROM deltas
        WHERE api_key_id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(cost_usd) <> 0 ORDER BY 1, 2, 3
        ON CONFLICT (tenant_id, month, api_key_id) DO UPDATE SET cost_usd = target.cost_usd + excluded.cost_usd
    )
    SELECT count(*) INTO done FROM deltas;
    RETURN done;
END $$;

-- Waits for a transaction that adds changes to `spend_days`, so that no change is missed or added twice.
SELECT pg_advisory_xact_lock(7411998);
INSERT INTO spend_key_months
SELECT tenant_id, date_trunc('month', day)::date, api_key_id, sum(cost_usd) FROM spend_days
WHERE api_key_id IS NOT NULL AND day >= date_trunc('month', now() AT TIME ZONE 'UTC')
GROUP BY 1, 2, 3 HAVING sum(cost_usd) <> 0;

SELECT pg_temp.tenant_table('spend_key_months');
REVOKE INSERT, UPDATE, DELETE ON spend_key_months FROM gatehouse_app;
GRANT DELETE ON spend_key_months TO gatehouse_service;
