-- alerts ----------------------------------------------------------------------------------------------------------
CREATE TABLE alert_rules (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    metric_type text NOT NULL
        CHECK (metric_type IN ('cost', 'error_rate', 'latency_p95', 'dlp_trigger_count', 'blocked_request_count')),
    threshold double precision NOT NULL,
    comparison text NOT NULL CHECK (comparison IN ('gt', 'lt', 'gte', 'lte')),
    window_minutes int NOT NULL CHECK (window_minutes BETWEEN 1 AND 10080),
    webhook_url text,
    enabled boolean NOT NULL DEFAULT true,
    cooldown_minutes int NOT NULL CHECK (cooldown_minutes BETWEEN 1 AND 10080),
    last_triggered_at timestamptz,
    -- when a machine last claimed the rule by schedule; null: the rule is due now
    evaluated_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX alert_rules_listing ON alert_rules (tenant_id, created_at DESC, id);
CREATE INDEX alert_rules_due ON alert_rules (evaluated_at NULLS FIRST) WHERE enabled;
SELECT pg_temp.tenant_table('alert_rules');
GRANT UPDATE (evaluated_at) ON alert_rules TO gatehouse_service;

-- A triggered rule with its values at that time. The row is also the notification to send until one attempt was made.
CREATE TABLE alert_history (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    rule_id uuid NOT NULL REFERENCES alert_rules ON DELETE CASCADE,
    rule_name text NOT NULL,
    metric_type text NOT NULL,
    metric_value double precision NOT NULL,
    threshold double precision NOT NULL,
    comparison text NOT NULL,
    triggered_at timestamptz NOT NULL,
    webhook_url text,
    webhook_attempted_at timestamptz,
    webhook_delivered boolean NOT NULL DEFAULT false,
    -- why the notification was not delivered
    webhook_error text
);
CREATE INDEX alert_history_listing ON alert_history (rule_id, triggered_at DESC, id DESC);
CREATE INDEX alert_history_age ON alert_history (triggered_at);
CREATE INDEX alert_history_unsent ON alert_history (triggered_at)
    WHERE webhook_url IS NOT NULL AND webhook_attempted_at IS NULL;
SELECT pg_temp.tenant_table('alert_history');
GRANT UPDATE (webhook_attempted_at, webhook_delivered, webhook_error), DELETE ON alert_history TO gatehouse_service;
