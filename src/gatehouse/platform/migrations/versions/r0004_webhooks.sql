-- webhooks --------------------------------------------------------------------------------------------------------
-- Dispatched events are deleted soon; waiting events have an index.
CREATE INDEX outbox_dispatched ON outbox (dispatched_at) WHERE dispatched_at IS NOT NULL;

CREATE TABLE webhooks (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    url text NOT NULL,
    events text[] NOT NULL CHECK (cardinality(events) > 0),
    sealed_secret text NOT NULL,
    enabled boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhooks_listing ON webhooks (tenant_id, created_at DESC, id DESC);
SELECT pg_temp.tenant_table('webhooks');

-- One event for one webhook. `position` is the order of the events.
CREATE TABLE webhook_deliveries (
    id uuid PRIMARY KEY,
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    event_type text NOT NULL,
    payload jsonb NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed', 'dead_letter')),
    attempts integer NOT NULL DEFAULT 0,
    -- null once there is no further attempt
    next_attempt_at timestamptz DEFAULT now(),
    -- when a delivery that has finally failed becomes a dead letter
    dead_at timestamptz,
    response_status integer,
    response_body text,
    last_error text,
    last_attempt_at timestamptz,
    delivered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_deliveries_listing ON webhook_deliveries (webhook_id, position DESC);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (webhook_id, position) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (dead_at) WHERE dead_at IS NOT NULL;
SELECT pg_temp.tenant_table('webhook_deliveries');
GRANT INSERT, UPDATE, DELETE ON webhook_deliveries TO gatehouse_service;

-- The turns of webhooks, with one row for each webhook that ever had a delivery. The lock on a row is the lock of the
-- webhook.
CREATE TABLE webhook_queues (
    webhook_id uuid PRIMARY KEY REFERENCES webhooks ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    -- when the turn is due, or null while nothing waits; a process that takes the turn advances this to the end of its
    -- lease
    due_at timestamptz,
    -- how often the turn was taken; a process whose lease has expired finds another number
    claims bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhook_queues_due ON webhook_queues (due_at) WHERE due_at IS NOT NULL;
SELECT pg_temp.tenant_table('webhook_queues');
GRANT INSERT, UPDATE, DELETE ON webhook_queues TO gatehouse_service;
