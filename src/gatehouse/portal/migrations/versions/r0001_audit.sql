-- audit -----------------------------------------------------------------------------------------------------------
-- Audit events. A row is written in the transaction of the change that it records, and is never changed.
CREATE TABLE audit (
    id uuid PRIMARY KEY,
    org_id uuid REFERENCES organizations,
    at timestamptz NOT NULL DEFAULT now(),
    actor_type text NOT NULL,
    actor_id text,
    action text NOT NULL,
    resource_type text,
    resource_id text,
    request_id text,
    ip text,
    details jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_of_organization ON audit (org_id, at);
SELECT pg_temp.org_table('audit');
REVOKE UPDATE, DELETE ON audit FROM gatehouse_app;
GRANT INSERT ON audit TO gatehouse_service;
