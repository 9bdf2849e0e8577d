-- budgets ---------------------------------------------------------------------------------------------------------
-- Begins the current period of a budget or a plan's limit with the recorded usage since the start of the period, if the
-- budget is new or counts again. The records that no worker has counted for the budget become one more lease, of writer
-- zero, from which no worker spends. The thresholds of a plan's limit, and the notice that the limit is reached, then
-- refer to the new limit. If several thresholds have been passed already, only the last one is still announced.
ALTER TABLE budget_periods ADD COLUMN plan_limit bigint;
COMMENT ON COLUMN budget_periods.plan_limit IS
    'the plan''s monthly requests that the steps are counted against; a worker with another limit announces nothing';

CREATE FUNCTION gatehouse_begin_budget(
    budget uuid, tenant uuid, scope text, scope_of uuid, begins timestamptz, ends timestamptz, most_requests bigint
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    nobody constant uuid := '00000000-0000-0000-0000-000000000000';
    requests bigint;
    usd numeric;
    tokens bigint;
    reached integer;
BEGIN
    IF tenant IS DISTINCT FROM NULLIF(current_setting('gatehouse.tenant', true), '')::uuid
        AND current_setting('gatehouse.operator', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'another organization''s budget';
    END IF;
    INSERT INTO budget_periods (budget_id, period_start, tenant_id, period_end) VALUES (budget, begins, tenant, ends)
        ON CONFLICT DO NOTHING;
    PERFORM FROM budget_periods WHERE budget_id = budget AND period_start = begins FOR UPDATE;
    SELECT count(*), coalesce(sum(u.cost_usd), 0),
        coalesce(sum(coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0) + coalesce(u.cached_tokens, 0)), 0)
        INTO requests, usd, tokens
        FROM usage_records u
        WHERE u.tenant_id = tenant AND u.timestamp >= begins AND u.timestamp < ends
            -- The same rule as in the gateway decides which records count.
            AND (u.status = 'success' OR u.input_tokens IS NOT NULL OR u.time_to_first_token_ms IS NOT NULL)
            AND CASE scope
                WHEN 'tenant' THEN true
                WHEN 'user' THEN u.user_id = scope_of
                WHEN 'api_key' THEN u.api_key_id = scope_of
                WHEN 'oauth_client' THEN u.client_id = scope_of
                -- A record contains the group only of a user who is in exactly one group.
                WHEN 'group' THEN u.group_id = scope_of OR (u.group_id IS NULL AND u.user_id IN (
                    SELECT m.user_id FROM group_members m WHERE m.tenant_id = tenant AND m.group_id = scope_of))
                END;
    INSERT INTO budget_leases (budget_id, period_start, writer_id, tenant_id, recorded_usd, recorded_requests,
            recorded_tokens)
        SELECT budget, begins, nobody, tenant, greatest(0, usd - coalesce(sum(l.recorded_usd), 0)),
            greatest(0, requests - coalesce(sum(l.recorded_requests), 0)),
            greatest(0, tokens - coalesce(sum(l.recorded_tokens), 0))
        FROM budget_leases l WHERE l.budget_id = budget AND l.period_start = begins AND l.writer_id <> nobody
        ON CONFLICT (budget_id, period_start, writer_id) DO UPDATE SET recorded_usd = excluded.recorded_usd,
            recorded_requests = excluded.recorded_requests, recorded_tokens = excluded.recorded_tokens;
    reached := CASE WHEN most_requests IS NULL OR requests * 100 < 80 * most_requests THEN 0
        WHEN requests * 100 < 90 * most_requests THEN 80 WHEN requests < most_requests THEN 90 ELSE 100 END;
    UPDATE budget_periods SET exceeded_at = NULL, plan_limit = most_requests, threshold = CASE WHEN threshold >= reached THEN reached
            ELSE CASE reached WHEN 80 THEN 0 WHEN 90 THEN 80 ELSE 90 END END
        WHERE budget_id = budget AND period_start = begins;
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_begin_budget FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_begin_budget TO gatehouse_app;

-- kill switches ---------------------------------------------------------------------------------------------------
-- Kill switches of whole providers. They are not in the providers' rows, so that a switch stays engaged while a
-- provider is removed and added again.
CREATE TABLE provider_kill_switches (
    tenant_id uuid NOT NULL REFERENCES tenants,
    provider text NOT NULL,
    disabled_at timestamptz NOT NULL DEFAULT now(),
    reason text NOT NULL,
    PRIMARY KEY (tenant_id, provider)
);
SELECT pg_temp.tenant_table('provider_kill_switches');
