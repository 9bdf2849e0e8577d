-- archive ---------------------------------------------------------------------------------------------------------
-- Organizations whose records must not be removed from the database or the archive until the hold is released.
CREATE TABLE legal_holds (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    reason text NOT NULL,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now()
);

-- The contents of the archive, with one row for each file. Only files in the state `kept` belong to it.
CREATE TABLE archive_files (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    records text NOT NULL CHECK (records IN ('audit_events', 'usage_records', 'dlp_events')),
    -- writing: the file may exist, and is not relied on. kept: the file was written and read back. replaced: another
    -- file has its rows, and this file will be deleted. gone: the file has expired.
    state text NOT NULL CHECK (state IN ('writing', 'kept', 'replaced', 'gone')),
    tier text NOT NULL CHECK (tier IN ('warm', 'cold')),
    path text NOT NULL,
    rows bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    first_at timestamptz,
    last_at timestamptz,
    -- for audit events only
    first_sequence bigint,
    last_sequence bigint,
    -- the expected properties of the file, and where in the audit chain it ends; only the master key opens it
    sealed_checkpoint text,
    -- when the rows were removed from the database
    removed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX archive_files_listing ON archive_files (tenant_id, records, first_at, id);
CREATE INDEX archive_files_unfinished ON archive_files (state) WHERE state IN ('writing', 'replaced');

-- The result of the last run.
CREATE TABLE archive_runs (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    at timestamptz NOT NULL,
    status text NOT NULL,
    rows bigint NOT NULL
);
-- People whom the archive still has to forget.
CREATE TABLE archive_forgets (
    tenant_id uuid NOT NULL REFERENCES tenants,
    person_id uuid NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, person_id)
);

SELECT pg_temp.tenant_table(name)
FROM unnest(ARRAY['legal_holds', 'archive_files', 'archive_runs', 'archive_forgets']) AS name;
REVOKE INSERT, UPDATE, DELETE ON archive_files, archive_runs, archive_forgets FROM gatehouse_app;
GRANT INSERT, UPDATE, DELETE ON archive_files, archive_runs, archive_forgets TO gatehouse_service;

-- A lock that is kept until the transaction ends by every removal of an organization's records. So setting a hold waits
-- for removals in progress, and nothing is removed after the hold is confirmed. Returns whether there is a hold.
CREATE FUNCTION gatehouse_held(tenant uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('gatehouse.legal_hold'), hashtext(tenant::text));
    RETURN EXISTS (SELECT FROM legal_holds WHERE tenant_id = tenant);
END $$;

-- Returns the tenant of the file if its rows may be removed from the database, or null under a legal hold. The function
-- runs as the owner, because no other role may remove records, and it only permits rows that the archive has.
CREATE FUNCTION gatehouse_archived(file uuid, kind text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner uuid;
BEGIN
    SELECT tenant_id INTO owner FROM archive_files WHERE id = file AND records = kind AND state = 'kept';
    IF owner IS NULL THEN
        RAISE EXCEPTION 'the archive does not keep that';
    END IF;
    RETURN CASE WHEN gatehouse_held(owner) THEN NULL ELSE owner END;
END $$;

-- These functions remove archived rows from the database, and return their number, or null under a legal hold. They
-- remove a limited number at a time, so that other transactions do not wait long for their locks.
CREATE FUNCTION gatehouse_remove_audit_events(file uuid, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner uuid := gatehouse_archived(file, 'audit_events');
    held archive_files;
    begins bigint;
    done bigint;
BEGIN
    IF owner IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT * INTO held FROM archive_files WHERE id = file;
    SELECT min(sequence) INTO begins FROM audit_events
    WHERE tenant_id = owner AND sequence BETWEEN held.first_sequence AND held.last_sequence;
    -- Events that a receiver has not accepted yet are not removed.
    DELETE FROM audit_events
    WHERE tenant_id = owner AND sequence BETWEEN begins
        AND least(held.last_sequence, begins + most - 1, gatehouse_unsent_from(owner) - 1);
    GET DIAGNOSTICS done = ROW_COUNT;
    SELECT min(sequence) INTO begins FROM audit_events WHERE tenant_id = owner;
    DELETE FROM audit_hours WHERE tenant_id = owner AND last_sequence < begins;
    RETURN done;
END $$;

CREATE FUNCTION gatehouse_remove_usage_records(file uuid, moments timestamptz[], ids uuid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner uuid := gatehouse_archived(file, 'usage_records');
    first timestamptz;
    last timestamptz;
    done bigint;
BEGIN
    IF owner IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT min(m), max(m) INTO first, last FROM unnest(moments) AS m;
    WITH gone AS (
        DELETE FROM usage_records r USING unnest(moments, ids) AS k (at, id)
        WHERE r.tenant_id = owner AND r.timestamp = k.at AND r.id = k.id AND r.timestamp BETWEEN first AND last
        RETURNING (r.timestamp AT TIME ZONE 'UTC')::date AS day, r.user_id, r.group_id, r.provider, r.model_id
    ), less AS (
        INSERT INTO usage_count_deltas (tenant_id, day, user_id, group_id, provider, model_id, records)
        SELECT owner, day, user_id, group_id, provider, model_id, -count(*) FROM gone GROUP BY 2, 3, 4, 5, 6
    )
    SELECT count(*) INTO done FROM gone;
    RETURN done;
END $$;

CREATE FUNCTION gatehouse_remove_dlp_events(file uuid, moments timestamptz[], ids uuid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner uuid := gatehouse_archived(file, 'dlp_events');
    first timestamptz;
    last timestamptz;
    days date[];
    done bigint;
BEGIN
    IF owner IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT min(m), max(m), array_agg(DISTINCT (m AT TIME ZONE 'UTC')::date) INTO first, last, days
    FROM unnest(moments) AS m;
    PERFORM FROM dlp_event_counts WHERE tenant_id = owner AND day = ANY(days)
    ORDER BY tenant_id, day, user_id, entity_type, direction, status FOR UPDATE;
    WITH gone AS (
        DELETE FROM dlp_events e USING unnest(moments, ids) AS k (at, id)
        WHERE e.tenant_id = owner AND e.timestamp = k.at AND e.id = k.id AND e.timestamp BETWEEN first AND last
        RETURNING (e.timestamp AT TIME ZONE 'UTC')::date AS day, e.user_id, e.entity_type, e.direction, e.status
    ), less AS (
        SELECT day, user_id, entity_type, direction, status, count(*) AS records FROM gone GROUP BY 1, 2, 3, 4, 5
    ), counted AS (
        UPDATE dlp_event_counts c SET records = c.records - less.records FROM less
        WHERE c.tenant_id = owner AND c.day = less.day AND c.user_id IS NOT DISTINCT FROM less.user_id
          AND c.entity_type IS NOT DISTINCT FROM less.entity_type AND c.direction = less.direction
          AND c.status = less.status
    )
    SELECT count(*) INTO done FROM gone;
    DELETE FROM dlp_event_counts WHERE tenant_id = owner AND day = ANY(days) AND records <= 0;
    RETURN done;
END $$;

-- Drops the partition of one month in which no organization has rows any more, and returns its name, or null if there
-- is none. A month must be over for five weeks, because its records may still arrive.
CREATE FUNCTION gatehouse_drop_empty_month() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
    month record;
    used boolean;
BEGIN
    -- The same lock as for the creation of partitions.
    PERFORM pg_advisory_xact_lock(7411991);
    FOR month IN
        SELECT c.relname AS name, p.relname AS parent FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
        WHERE p.relname IN ('audit_events', 'usage_records', 'dlp_events') AND c.relname ~ '_[0-9]{6}$'
          AND to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month 35 days' <= now()
        ORDER BY right(c.relname, 6)
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', month.name) INTO used;
        CONTINUE WHEN used;
        BEGIN
            EXECUTE format('LOCK TABLE %I, %I IN ACCESS EXCLUSIVE MODE', month.parent, month.name);
            EXECUTE format('SELECT EXISTS (SELECT FROM %I)', month.name) INTO used;
            IF NOT used THEN
                EXECUTE format('DROP TABLE %I', month.name);
                RETURN month.name;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            -- Another transaction is reading, so the drop is left to a later run. Transactions that came later must not
            -- wait for this one.
            CONTINUE;
        END;
    END LOOP;
    RETURN NULL;
END $$;

-- As in revision 0003, but not under a legal hold; and the archive must forget the person too.
CREATE OR REPLACE FUNCTION gatehouse_anonymise(tenant uuid, person uuid, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    IF EXISTS (SELECT FROM users WHERE id = person) THEN
        RAISE EXCEPTION 'the user is still there';
    END IF;
    IF gatehouse_held(tenant) THEN
        RETURN 0;
    END IF;
    INSERT INTO archive_forgets (tenant_id, person_id)
    SELECT tenant, person WHERE EXISTS (
        SELECT FROM archive_files f
        WHERE f.tenant_id = tenant AND f.records = 'audit_events' AND f.state IN ('writing', 'kept'))
    ON CONFLICT DO NOTHING;
    WITH found AS (
        SELECT sequence, timestamp FROM audit_events
        WHERE tenant_id = tenant
          AND (actor_id = person::text
               -- The actor of the event may have been forgotten before, and its salt was deleted then.
               OR (resource_type = 'user' AND resource_id = person::text AND (salt IS NOT NULL OR details <> '{}')))
        LIMIT most
    )
    UPDATE audit_events e SET
        actor_id = NULLIF(e.actor_id, person::text),
        -- If another person changed the user, the IP address belongs to that person and is kept.
        ip = CASE WHEN e.actor_id <> person::text THEN e.ip END,
        details = CASE WHEN e.resource_type = 'user' AND e.resource_id = person::text THEN '{}' ELSE e.details END,
        salt = NULL
    FROM found WHERE e.tenant_id = tenant AND e.sequence = found.sequence AND e.timestamp = found.timestamp;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

REVOKE EXECUTE ON FUNCTION gatehouse_held, gatehouse_archived, gatehouse_remove_audit_events,
    gatehouse_remove_usage_records, gatehouse_remove_dlp_events, gatehouse_drop_empty_month FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_held, gatehouse_archived, gatehouse_remove_audit_events,
    gatehouse_remove_usage_records, gatehouse_remove_dlp_events, gatehouse_drop_empty_month TO gatehouse_service;
