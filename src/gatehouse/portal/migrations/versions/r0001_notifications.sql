-- notifications ---------------------------------------------------------------------------------------------------
CREATE TABLE notifications (
    id uuid PRIMARY KEY,
    org_id uuid NOT NULL REFERENCES organizations,
    type text NOT NULL CHECK (type IN ('outpost_stale', 'dead_letter', 'provisioning_failed')),
    severity text NOT NULL CHECK (severity IN ('warning', 'critical')),
    message text NOT NULL,
    -- the id of the outpost, the webhook or the organization that the notification concerns
    subject_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz
);
-- A subject has at most one open notification of a type.
CREATE UNIQUE INDEX notifications_open ON notifications (org_id, type, subject_id) WHERE resolved_at IS NULL;
CREATE INDEX notifications_listing ON notifications (org_id, created_at DESC, id DESC);
CREATE INDEX notifications_subject ON notifications (subject_id, type, created_at);
SELECT pg_temp.org_table('notifications');
REVOKE DELETE ON notifications FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON notifications TO gatehouse_service;
