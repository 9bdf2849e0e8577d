-- lists -----------------------------------------------------------------------------------------------------------
-- Changes of usage_counts by the keeper or the archiver that are not applied to it yet. A batch changes nearly as many
-- counts as it has records, which costs ten times as much as appending the changes here. The combined changes of
-- several seconds are few. The number of records is the sum of both tables.
CREATE TABLE usage_count_deltas (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    user_id uuid,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL
) PARTITION BY RANGE (day);
-- The keeper copies directly into this table, as it does into partitions, for the same reasons.
CREATE TABLE usage_count_deltas_all PARTITION OF usage_count_deltas DEFAULT;
CREATE INDEX usage_count_deltas_user ON usage_count_deltas (tenant_id, user_id);

-- Applies the changes to usage_counts, and returns their number. Returns zero if another transaction is applying them.
CREATE FUNCTION gatehouse_fold_usage_counts() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    done bigint;
    owners uuid[];
    days date[];
BEGIN
    IF NOT pg_try_advisory_xact_lock(7411992) THEN
        RETURN 0;
    END IF;
    WITH deltas AS (
        DELETE FROM usage_count_deltas RETURNING *
    ), folded AS (
        -- The rows are ordered, because the keeper of the previous version counts in usage_counts itself.
        INSERT INTO usage_counts AS held (tenant_id, day, user_id, group_id, provider, model_id, records)
        SELECT tenant_id, day, user_id, group_id, provider, model_id, sum(records) FROM deltas
        GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (tenant_id, day, user_id, group_id, provider, model_id)
        DO UPDATE SET records = held.records + excluded.records
        RETURNING tenant_id, day, records
    ), over AS (
        SELECT array_agg(DISTINCT tenant_id) AS owners, array_agg(DISTINCT day) AS days FROM folded WHERE records <= 0
    )
    SELECT (SELECT count(*) FROM deltas), over.owners, over.days INTO done, owners, days FROM over;
    IF owners IS NOT NULL THEN
        DELETE FROM usage_counts WHERE tenant_id = ANY(owners) AND day = ANY(days) AND records = 0;
    END IF;
    RETURN done;
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_fold_usage_counts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_fold_usage_counts TO gatehouse_service;

-- The number of usage records of all users, by the day and by the hour (UTC). A list of all users sums up a few hundred
-- rows instead of one row for each user, model and day. On a day with very many records, only one hour is read.
CREATE TABLE usage_totals (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, group_id, provider, model_id)
);
CREATE TABLE usage_hour_totals (
    tenant_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, hour, group_id, provider, model_id)
);
-- Triggers on the records and on each of their partitions maintain the counts whenever records are added or removed.
CREATE FUNCTION gatehouse_total_usage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- The rows are ordered, so that two statements that change the same totals cannot deadlock.
    WITH hours AS MATERIALIZED (
        SELECT tenant_id, date_trunc('hour', timestamp, 'UTC') AS hour, group_id, provider, model_id,
               CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END AS records
        FROM changed GROUP BY 1, 2, 3, 4, 5
    ), hourly AS (
        INSERT INTO usage_hour_totals AS held SELECT * FROM hours ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (tenant_id, hour, group_id, provider, model_id)
        DO UPDATE SET records = held.records + excluded.records
    )
    INSERT INTO usage_totals AS held
    SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date, group_id, provider, model_id, sum(records) FROM hours
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, day, group_id, provider, model_id)
    DO UPDATE SET records = held.records + excluded.records;
    IF TG_OP = 'DELETE' THEN
        DELETE FROM usage_totals t USING (SELECT DISTINCT tenant_id, (timestamp AT TIME ZONE 'UTC')::date AS day
                                          FROM changed) c
        WHERE t.tenant_id = c.tenant_id AND t.day = c.day AND t.records = 0;
        DELETE FROM usage_hour_totals t USING (SELECT DISTINCT tenant_id, date_trunc('hour', timestamp, 'UTC') AS hour
                                               FROM changed) c
        WHERE t.tenant_id = c.tenant_id AND t.hour = c.hour AND t.records = 0;
    END IF;
    RETURN NULL;
END $$;

-- The range of an organization's chain that contains the events of an hour (UTC). The chain is in the order in which
-- events were written, which can differ from the order of their times. Without this table, a query from a given time on
-- would read the chain from its start.
CREATE TABLE audit_hours (
    tenant_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    PRIMARY KEY (tenant_id, hour)
);
CREATE FUNCTION gatehouse_note_audit_hours() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- A transaction that writes to a chain has its lock, so the chain is in order.
    INSERT INTO audit_hours AS held
    SELECT tenant_id, date_trunc('hour', timestamp, 'UTC'), min(sequence), max(sequence) FROM changed
    GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant_id, hour) DO UPDATE SET
        first_sequence = least(held.first_sequence, excluded.first_sequence),
        last_sequence = greatest(held.last_sequence, excluded.last_sequence);
    RETURN NULL;
END $$;

-- The triggers for rows that are inserted directly into a partition, which do not fire the triggers of its parent.
CREATE FUNCTION gatehouse_watch_month(parent text, month text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER counted AFTER INSERT ON %I REFERENCING NEW TABLE AS %I'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION %I()', month,
                   CASE parent WHEN 'dlp_events' THEN 'added' ELSE 'changed' END,
                   CASE parent WHEN 'dlp_events' THEN 'gatehouse_count_dlp_events'
                               WHEN 'usage_records' THEN 'gatehouse_total_usage'
                               WHEN 'audit_events' THEN 'gatehouse_note_audit_hours' END);
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_watch_month FROM PUBLIC;

-- As in the earlier revision, with the triggers of the other tables.
CREATE OR REPLACE FUNCTION gatehouse_ensure_partitions(first date, months integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    parent text;
    month text;
    other text;
    begins date;
    bounds text[];
BEGIN
    PERFORM pg_advisory_xact_lock(7411991);
    FOREACH parent IN ARRAY ARRAY['audit_events', 'usage_records', 'dlp_events'] LOOP
        other := parent || '_other';
        FOR step IN 0 .. months - 1 LOOP
            begins := (date_trunc('month', first) + make_interval(months => step))::date;
            month := parent || to_char(begins, '"_"YYYYMM');
            CONTINUE WHEN to_regclass(month) IS NOT NULL;
            bounds := ARRAY[begins::text || ' 00:00+00', (begins + interval '1 month')::date::text || ' 00:00+00'];
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', month, parent);
            IF to_regclass(other) IS NOT NULL THEN
                EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', other);
                EXECUTE format('WITH moved AS (DELETE FROM %I WHERE timestamp >= %L AND timestamp < %L RETURNING *)'
                               ' INSERT INTO %I SELECT * FROM moved', other, bounds[1], bounds[2], month);
            END IF;
            -- The triggers are created here, so that the moved rows are counted.
            PERFORM gatehouse_watch_month(parent, month);
            -- The partition is attached instead of created as a partition, because a creation would block the whole
            -- table meanwhile.
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           parent, month, bounds[1], bounds[2]);
            -- The keeper copies directly into the partition, because PostgreSQL refuses COPY into a table with
            -- row-level security. The application's role has no rights on a partition, so its policies cannot be
            -- bypassed this way.
            EXECUTE format('GRANT SELECT, INSERT ON %I TO gatehouse_service', month);
        END LOOP;
    END LOOP;
END $$;

-- Writers are locked out before the existing rows are counted, so that no row is missed.
CREATE TRIGGER counted AFTER INSERT ON usage_records REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_total_usage();
CREATE TRIGGER uncounted AFTER DELETE ON usage_records REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_total_usage();
CREATE TRIGGER counted AFTER INSERT ON audit_events REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION gatehouse_note_audit_hours();
SELECT gatehouse_watch_month(p.relname, c.relname)
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
WHERE p.oid IN ('usage_records'::regclass, 'audit_events'::regclass) AND c.relname ~ '_[0-9]{6}$'
ORDER BY p.relname DESC, c.relname;
INSERT INTO usage_hour_totals
SELECT tenant_id, date_trunc('hour', timestamp, 'UTC'), group_id, provider, model_id, count(*) FROM usage_records
GROUP BY 1, 2, 3, 4, 5;
INSERT INTO usage_totals
SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date, group_id, provider, model_id, sum(records) FROM usage_hour_totals
GROUP BY 1, 2, 3, 4, 5;
INSERT INTO audit_hours
SELECT tenant_id, date_trunc('hour', timestamp, 'UTC'), min(sequence), max(sequence) FROM audit_events GROUP BY 1, 2;

-- Finds the records of a rare model or group among many others.
CREATE INDEX usage_records_model ON usage_records (tenant_id, provider, model_id, timestamp);
CREATE INDEX usage_records_group ON usage_records (tenant_id, group_id, timestamp) WHERE group_id IS NOT NULL;

SELECT pg_temp.tenant_table(name)
FROM unnest(ARRAY['usage_count_deltas', 'usage_totals', 'usage_hour_totals', 'audit_hours']) AS name;
REVOKE INSERT, UPDATE, DELETE ON usage_count_deltas, usage_totals, usage_hour_totals, audit_hours FROM gatehouse_app;
GRANT SELECT, INSERT ON usage_count_deltas_all TO gatehouse_service;
