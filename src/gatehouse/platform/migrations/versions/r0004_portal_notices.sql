-- the portal's notices --------------------------------------------------------------------------------------------
-- Notices that the portal has not accepted yet. They are deleted once it accepts them. A process that takes a notice
-- advances its `due_at`.
CREATE TABLE portal_notices (
    tenant_id uuid NOT NULL REFERENCES tenants,
    type text NOT NULL CHECK (type = 'dead_letter'),
    subject_id uuid NOT NULL,
    message text NOT NULL,
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, type, subject_id)
);
CREATE INDEX portal_notices_due ON portal_notices (due_at);
SELECT pg_temp.tenant_table('portal_notices');
REVOKE INSERT, UPDATE, DELETE ON portal_notices FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON portal_notices TO gatehouse_service;
