-- budgets ---------------------------------------------------------------------------------------------------------
CREATE TABLE budgets (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    scope_type text NOT NULL CHECK (scope_type IN ('tenant', 'group', 'user', 'api_key', 'oauth_client')),
    scope_id uuid NOT NULL,
    period text NOT NULL CHECK (period IN ('minute', 'day', 'month')),
    limit_usd numeric CHECK (limit_usd > 0),
    limit_requests bigint CHECK (limit_requests > 0),
    limit_tokens bigint CHECK (limit_tokens > 0),
    action text NOT NULL CHECK (action IN ('block', 'warn')),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK (num_nonnulls(limit_usd, limit_requests, limit_tokens) > 0),
    UNIQUE (tenant_id, scope_type, scope_id, period)
);
CREATE INDEX budgets_listing ON budgets (tenant_id, created_at DESC, id);
SELECT pg_temp.tenant_table('budgets');

-- A budget is deleted with the object of its scope, however that object is deleted.
CREATE FUNCTION gatehouse_forget_budgets() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM budgets WHERE tenant_id = OLD.tenant_id
        AND scope_id = (to_jsonb(OLD) ->> CASE TG_TABLE_NAME WHEN 'oauth_clients' THEN 'client_id' ELSE 'id' END)::uuid;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_budgets AFTER DELETE ON groups FOR EACH ROW EXECUTE FUNCTION gatehouse_forget_budgets();
CREATE TRIGGER forget_budgets AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION gatehouse_forget_budgets();
CREATE TRIGGER forget_budgets AFTER DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION gatehouse_forget_budgets();
CREATE TRIGGER forget_budgets AFTER DELETE ON oauth_clients FOR EACH ROW EXECUTE FUNCTION gatehouse_forget_budgets();

-- One period of a budget, or of a plan's monthly limit (then `budget_id` is the tenant's id). The lock on this row
-- serializes the grants of leases.
CREATE TABLE budget_periods (
    budget_id uuid NOT NULL,
    period_start timestamptz NOT NULL,
    tenant_id uuid NOT NULL REFERENCES tenants,
    period_end timestamptz NOT NULL,
    -- when the limit was reached; announced once
    exceeded_at timestamptz,
    -- the percentage of a plan's limit that was last announced
    threshold smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (budget_id, period_start)
);
CREATE INDEX budget_periods_end ON budget_periods (period_end);
CREATE INDEX budget_periods_minutes ON budget_periods (period_end)
    WHERE period_end - period_start <= interval '1 minute';
SELECT pg_temp.tenant_table('budget_periods');
GRANT INSERT, UPDATE, DELETE ON budget_periods TO gatehouse_service;

-- The amount that one worker may spend in a period, and the amount recorded for it. `granted` is never less than what
-- the worker has spent. Once the worker has ended and its journal is stored, it equals the recorded amount.
CREATE TABLE budget_leases (
    budget_id uuid NOT NULL,
    period_start timestamptz NOT NULL,
    writer_id uuid NOT NULL,
    tenant_id uuid NOT NULL REFERENCES tenants,
    granted_nano_usd numeric NOT NULL DEFAULT 0,
    granted_requests bigint NOT NULL DEFAULT 0,
    granted_tokens bigint NOT NULL DEFAULT 0,
    recorded_usd numeric NOT NULL DEFAULT 0,
    recorded_requests bigint NOT NULL DEFAULT 0,
    recorded_tokens bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (budget_id, period_start, writer_id)
);
CREATE INDEX budget_leases_writer ON budget_leases (writer_id);
SELECT pg_temp.tenant_table('budget_leases');
GRANT INSERT, UPDATE, DELETE ON budget_leases TO gatehouse_service;

-- invoices --------------------------------------------------------------------------------------------------------
CREATE TABLE invoices (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    period text NOT NULL,
    total_usd numeric NOT NULL,
    line_items jsonb NOT NULL,
    generated_at timestamptz NOT NULL,
    UNIQUE (tenant_id, period)
);
SELECT pg_temp.tenant_table('invoices');
GRANT INSERT ON invoices TO gatehouse_service;
