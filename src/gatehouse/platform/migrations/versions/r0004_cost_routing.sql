-- cost routing ----------------------------------------------------------------------------------------------------
CREATE TABLE cost_routing_policies (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    enabled boolean NOT NULL,
    strategy text NOT NULL,
    -- empty: the default policy of the organization. There are no references, so that the removal of a group does not
    -- make a policy the default
    group_ids uuid[] NOT NULL,
    -- prices in it are strings, so that they are exact
    model_filters jsonb NOT NULL,
    fallback_chain jsonb NOT NULL,
    cost_cap_usd numeric CHECK (cost_cap_usd > 0),
    cost_cap_action text,
    latency_budget_ms integer CHECK (latency_budget_ms > 0),
    cache_ttl_seconds integer CHECK (cache_ttl_seconds > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((cost_cap_usd IS NULL) = (cost_cap_action IS NULL))
);
CREATE INDEX cost_routing_policies_listing ON cost_routing_policies (tenant_id, created_at, id);
SELECT pg_temp.tenant_table('cost_routing_policies');

-- Recent latencies of models as measured by each worker, for the other workers, kept for ten minutes. The rows belong
-- to no organization.
CREATE TABLE latency_reports (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    body bytea NOT NULL
);
CREATE INDEX latency_reports_age ON latency_reports (at);
GRANT SELECT, INSERT, DELETE ON latency_reports TO gatehouse_service;
