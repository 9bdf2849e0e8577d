-- siem ------------------------------------------------------------------------------------------------------------
-- The receiver to which an organization's records are forwarded. The type determines which fields are set
-- (operations/siem).
CREATE TABLE siem_targets (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    type text NOT NULL CHECK (type IN ('hec', 'syslog_tcp', 'syslog_tls', 'webhook', 'file')),
    enabled boolean NOT NULL,
    url text,
    host text,
    port integer CHECK (port BETWEEN 1 AND 65535),
    ca_certificate text,
    index text,
    sealed_secret text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
SELECT pg_temp.tenant_table('siem_targets');

-- The position of the forwarding. The lock on this row is the organization's turn.
CREATE TABLE siem_cursors (
    tenant_id uuid PRIMARY KEY REFERENCES siem_targets ON DELETE CASCADE,
    -- sequence of the last audit event that the receiver has accepted
    sequence bigint NOT NULL,
    -- when the turn is due; a process that takes the turn advances this to the end of its lease
    due_at timestamptz NOT NULL DEFAULT now(),
    -- how often the turn was taken; a process whose lease has expired finds another number
    claims bigint NOT NULL DEFAULT 0,
    -- failures since the receiver last accepted a batch
    failures integer NOT NULL DEFAULT 0,
    -- audit events that were removed before they could be sent
    skipped bigint NOT NULL DEFAULT 0,
    last_sent_at timestamptz,
    last_error text,
    last_failed_at timestamptz
);
SELECT pg_temp.tenant_table('siem_cursors');
GRANT UPDATE ON siem_cursors TO gatehouse_service;

-- Events that are not in the audit chain and wait to be sent: DLP events, and events of the outbox. There is no
-- reference to the tenant, because adding an event must not wait for a change of the organization.
CREATE TABLE siem_queue (
    tenant_id uuid NOT NULL,
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('dlp', 'event')),
    at timestamptz NOT NULL,
    body jsonb NOT NULL,
    PRIMARY KEY (tenant_id, position)
);
SELECT pg_temp.tenant_table('siem_queue');
GRANT INSERT, DELETE ON siem_queue TO gatehouse_service;

-- The organizations whose records are forwarded now.
CREATE VIEW siem_forwarding WITH (security_invoker = true) AS
    SELECT s.tenant_id FROM siem_targets s JOIN tenants t ON t.id = s.tenant_id
    WHERE s.enabled AND t.deleted_at IS NULL AND coalesce((t.feature_flags ->> 'audit_log_streaming')::boolean, false);
GRANT SELECT ON siem_forwarding TO gatehouse_app, gatehouse_service;

-- Returns the first audit event that the organization's receiver has not accepted, or null if nothing is forwarded.
-- This event and all later ones must not be removed. The result never decreases.
CREATE FUNCTION gatehouse_unsent_from(tenant uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT c.sequence + 1 FROM siem_cursors c JOIN siem_forwarding f ON f.tenant_id = c.tenant_id
    WHERE c.tenant_id = tenant
$$;

-- As in the earlier revision. In addition, the events of organizations that forward are added to their queue, in the
-- transaction that stores the events, for every partition.
CREATE OR REPLACE FUNCTION gatehouse_count_dlp_events() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- The rows are ordered, so that two statements that count the same kinds cannot deadlock.
    INSERT INTO dlp_event_counts AS held (tenant_id, day, user_id, entity_type, direction, status, records)
    SELECT tenant_id, (timestamp AT TIME ZONE 'UTC')::date, user_id, entity_type, direction, status, count(*)
    FROM added GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (tenant_id, day, user_id, entity_type, direction, status)
    DO UPDATE SET records = held.records + excluded.records;
    INSERT INTO siem_queue (tenant_id, id, kind, at, body)
    SELECT a.tenant_id, a.id, 'dlp', a.timestamp, to_jsonb(a)
    FROM added a JOIN siem_forwarding f ON f.tenant_id = a.tenant_id ORDER BY a.timestamp, a.id;
    RETURN NULL;
END $$;
