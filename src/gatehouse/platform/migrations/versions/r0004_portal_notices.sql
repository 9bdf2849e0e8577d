-- the portal's notices --------------------------------------------------------------------------------------------
-- What the portal is still to be told: removed once it was. `due_at` is moved by whoever takes it.
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
