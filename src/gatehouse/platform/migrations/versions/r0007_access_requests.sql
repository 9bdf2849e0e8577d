-- access requests
CREATE TABLE access_requests (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('model', 'limit')),
    -- provider/model-id; the name is stored, so that the request stays readable when the catalog entry is deleted
    model text,
    period text CHECK (period IN ('minute', 'day', 'month')),
    limit_usd numeric CHECK (limit_usd > 0),
    limit_requests bigint CHECK (limit_requests > 0),
    limit_tokens bigint CHECK (limit_tokens > 0),
    reason text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'withdrawn')),
    -- the granted access: a group, or the limits of a budget
    granted jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    decided_by text,
    decision_reason text,
    CHECK ((kind = 'model') = (model IS NOT NULL) AND (kind = 'limit') = (period IS NOT NULL)),
    CHECK (kind = 'model' OR num_nonnulls(limit_usd, limit_requests, limit_tokens) > 0)
);
CREATE INDEX access_requests_listing ON access_requests (tenant_id, created_at, id);
CREATE INDEX access_requests_of_user ON access_requests (user_id, created_at, id);
-- A person can have one pending request for a model, and one for each period.
CREATE UNIQUE INDEX access_requests_pending ON access_requests (user_id, coalesce(model, period)) WHERE status = 'pending';
SELECT pg_temp.tenant_table('access_requests');
