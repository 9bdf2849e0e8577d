-- spend -----------------------------------------------------------------------------------------------------------
-- Requests, tokens and cost by the day (UTC) on which the requests arrived, by group, user and API key. `requests`
-- counts all requests, and stays when the records are archived. `records` counts the records in `usage_records`.
CREATE TABLE spend_days (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    group_id uuid,
    user_id uuid,
    api_key_id uuid,
    requests bigint NOT NULL,
    input_tokens numeric NOT NULL,
    output_tokens numeric NOT NULL,
    cached_tokens numeric NOT NULL,
    cost_usd numeric NOT NULL,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, group_id, user_id, api_key_id)
);
CREATE INDEX spend_days_key ON spend_days (tenant_id, api_key_id, day) WHERE api_key_id IS NOT NULL;
CREATE INDEX spend_days_age ON spend_days (day);
-- Changes that are not added to `spend_days` yet, as in `usage_count_deltas`. The totals are the sums of both tables.
CREATE TABLE spend_deltas (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    group_id uuid,
    user_id uuid,
    api_key_id uuid,
    requests bigint NOT NULL,
    input_tokens numeric NOT NULL,
    output_tokens numeric NOT NULL,
    cached_tokens numeric NOT NULL,
    cost_usd numeric NOT NULL,
    records bigint NOT NULL
);

-- As in the earlier revision, with the changes of spend.
CREATE OR REPLACE FUNCTION gatehouse_total_usage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO spend_deltas
        SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, group_id, user_id, api_key_id, count(*),
               coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0),
               coalesce(sum(cost_usd), 0), count(*)
        FROM changed GROUP BY 1, 2, 3, 4, 5;
    ELSE
        -- Archived records remain in the totals.
        INSERT INTO spend_deltas
        SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, group_id, user_id, api_key_id, 0, 0, 0, 0, 0, -count(*)
        FROM changed GROUP BY 1, 2, 3, 4, 5;
    END IF;
    -- The rows are ordered, so that two statements that change the same totals cannot deadlock.
    WITH hours AS MATERIALIZED (
        SELECT tenant_id, date_trunc('hour', timestamp, 'UTC') AS hour, group_id, provider, model_id,
               CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END AS records
        FROM changed GROUP BY 1, 2, 3, 4, 5
    ), hourly AS (
        INSERT INTO usage_hour_totals AS held SELECT * FROM hours ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (tenant_id, hour, group_id, provider, model_id)
        DO UPDATE SET records = held.records + excluded.records
    )
    INSERT INTO usage_totals AS held
    SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date, group_id, provider, model_id, sum(records) FROM hours
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, day, group_id, provider, model_id)
    DO UPDATE SET records = held.records + excluded.records;
    IF TG_OP = 'DELETE' THEN
        DELETE FROM usage_totals t USING (SELECT DISTINCT tenant_id, (timestamp AT TIME ZONE 'UTC')::date AS day
                                          FROM changed) c
        WHERE t.tenant_id = c.tenant_id AND t.day = c.day AND t.records = 0;
        DELETE FROM usage_hour_totals t USING (SELECT DISTINCT tenant_id, date_trunc('hour', timestamp, 'UTC') AS hour
                                               FROM changed) c
        WHERE t.tenant_id = c.tenant_id AND t.hour = c.hour AND t.records = 0;
    END IF;
    RETURN NULL;
END $$;

-- Adds the changes to `spend_days`, and returns their number. Returns zero if another transaction is adding them.
CREATE FUNCTION gatehouse_fold_spend() RETURNS bigint
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
    )
    SELECT count(*) INTO done FROM deltas;
    RETURN done;
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_fold_spend FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_fold_spend TO gatehouse_service;

-- Writers are locked out before the existing rows are added up, so that no row is missed.
LOCK TABLE usage_records IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO spend_days
SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, group_id, user_id, api_key_id, count(*),
       coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0),
       coalesce(sum(cost_usd), 0), count(*)
FROM usage_records GROUP BY 1, 2, 3, 4, 5;

SELECT pg_temp.tenant_table(name) FROM unnest(ARRAY['spend_days', 'spend_deltas']) AS name;
REVOKE INSERT, UPDATE, DELETE ON spend_days, spend_deltas FROM gatehouse_app;
GRANT DELETE ON spend_days TO gatehouse_service;

-- details of a request --------------------------------------------------------------------------------------------
ALTER TABLE usage_records
    ADD COLUMN error_code text,
    -- an array of the failed attempts, oldest first; null if there are none
    ADD COLUMN attempts jsonb,
    -- duration of the attempt that was answered
    ADD COLUMN attempt_ms double precision;
CREATE INDEX dlp_events_request ON dlp_events (tenant_id, request_id);
