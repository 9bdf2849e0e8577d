-- jobs ------------------------------------------------------------------------------------------------------------
-- Queued calls of the platform. Jobs of one lane (an organization, or the kind itself) run one after the other.
CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    org_id uuid REFERENCES organizations,
    lane text NOT NULL,
    status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'done', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(),
    -- after this time the worker of a running job counts as dead
    leased_until timestamptz,
    -- the reason why the last attempt failed
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
-- A job reads the present state when it runs, so one waiting job is sufficient for all changes.
CREATE UNIQUE INDEX jobs_waiting ON jobs (kind, lane) WHERE status = 'queued';
CREATE UNIQUE INDEX jobs_running ON jobs (lane) WHERE status = 'running';
CREATE INDEX jobs_due ON jobs (run_at) WHERE status IN ('queued', 'running');
GRANT SELECT, INSERT, UPDATE ON jobs TO gatehouse_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO gatehouse_service;
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
-- Jobs that concern all organizations have no `org_id`.
CREATE POLICY organization ON jobs TO gatehouse_app
    USING (org_id IS NULL OR org_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid)
    WITH CHECK (org_id IS NULL OR org_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid);
CREATE POLICY service ON jobs TO gatehouse_service USING (true) WITH CHECK (true);
