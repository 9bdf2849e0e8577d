-- Background jobs (administration/jobs.py). Jobs of one lane run one after the other.
CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    kind text NOT NULL,
    -- null if the job belongs to no organization
    org_id uuid,
    lane text NOT NULL,
    args jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'done', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(),
    -- After this time, the worker of a running job counts as dead.
    leased_until timestamptz,
    -- why the last attempt failed
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX jobs_waiting ON jobs (kind, lane) WHERE status = 'queued';
CREATE UNIQUE INDEX jobs_running ON jobs (lane) WHERE status = 'running';
CREATE INDEX jobs_due ON jobs (run_at) WHERE status IN ('queued', 'running');
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO gatehouse_service;
-- Administration queues jobs and counts them, but cannot read their arguments.
GRANT INSERT, SELECT (id, kind, lane, status, run_at), UPDATE (run_at, attempts, updated_at) ON jobs TO gatehouse_app;
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY service ON jobs TO gatehouse_service USING (true) WITH CHECK (true);
DO $$
DECLARE
    condition constant text := $q$org_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid
        OR current_setting('gatehouse.operator', true) = 'on'$q$;
BEGIN
    EXECUTE format('CREATE POLICY tenant ON jobs TO gatehouse_app USING (%s) WITH CHECK (%s)', condition, condition);
END $$;

-- Moves jobs from the tables of procrastinate, which versions before 0006 use. Such a version may queue jobs while it
-- serves in parallel with this one, so the function is called regularly. The tables do not exist in new installations.
CREATE FUNCTION gatehouse_take_over_jobs() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    moved bigint;
BEGIN
    IF to_regclass('procrastinate_jobs') IS NULL THEN
        RETURN 0;
    END IF;
    WITH taken AS (
        DELETE FROM procrastinate_jobs j
        WHERE task_name IN ('access.anonymise', 'scim.anonymise') AND (status = 'todo' OR status = 'doing' AND NOT EXISTS (
            SELECT FROM procrastinate_workers w
            WHERE w.id = j.worker_id AND w.last_heartbeat > now() - interval '1 minute'))
        RETURNING gen_random_uuid() AS id, j.args, j.scheduled_at
    )
    INSERT INTO jobs (id, kind, org_id, lane, args, run_at)
    SELECT id, 'access.anonymise', (args->>'tenant_id')::uuid, id::text, args - 'tenant_id', coalesce(scheduled_at, now())
    FROM taken;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN moved;
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_take_over_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_take_over_jobs TO gatehouse_service;
SELECT gatehouse_take_over_jobs();
