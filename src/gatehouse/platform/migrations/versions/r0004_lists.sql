-- lists -----------------------------------------------------------------------------------------------------------
-- Counts that the drain has added to usage_counts, or the archiver taken off, and that are not yet in there. A batch adds
-- to nearly as many counts as it has records, which costs ten times what appending them here does; together those of
-- some seconds are few. How many there are is what both say.
CREATE TABLE usage_count_deltas (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    user_id uuid,
    group_id uuid,
    provider text,
    model_id text,
    records bigint NOT NULL
) PARTITION BY RANGE (day);
-- The drain copies into this one, as it does into months, and for the same reasons.
CREATE TABLE usage_count_deltas_all PARTITION OF usage_count_deltas DEFAULT;
CREATE INDEX usage_count_deltas_user ON usage_count_deltas (tenant_id, user_id);

-- Puts them there. How many there were; none where somebody else is doing it.
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
        -- In order: a drain of the version before counts in usage_counts itself.
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

-- How many usage records there are without regard to users, by the day and by the hour (UTC): a list of everybody's adds
-- up some hundred rows, not one for each user, model and day; and of a day with very many, only an hour is read.
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
-- Kept by triggers on the records and on each month of theirs, whoever adds or removes records.
CREATE FUNCTION gatehouse_total_usage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    -- In order: two statements that change the same totals must not wait for each other.
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

-- Which part of an organization's chain has the events of an hour (UTC). The chain is in the order in which events were
-- written, which is not that of their moments: without this, whoever asks from a moment on reads it from its start.
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
    -- Whoever writes to a chain has its lock; chains are in order.
    INSERT INTO audit_hours AS held
    SELECT tenant_id, date_trunc('hour', timestamp, 'UTC'), min(sequence), max(sequence) FROM changed
    GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (tenant_id, hour) DO UPDATE SET
        first_sequence = least(held.first_sequence, excluded.first_sequence),
        last_sequence = greatest(held.last_sequence, excluded.last_sequence);
    RETURN NULL;
END $$;

-- What is to be done about rows that are inserted into a month itself, which does not pass its parent's trigger.
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

-- As before, with the others' triggers.
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
            -- Made now: what was moved is counted.
            PERFORM gatehouse_watch_month(parent, month);
            -- Attached, not created as a partition: that would keep everyone from the whole table meanwhile.
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           parent, month, bounds[1], bounds[2]);
            -- The drain copies into the month itself: PostgreSQL refuses COPY into a table with row-level security.
            -- The application's role has no right on a month, so its policies cannot be passed by that way.
            EXECUTE format('GRANT SELECT, INSERT ON %I TO gatehouse_service', month);
        END LOOP;
    END LOOP;
END $$;

-- First whoever adds has to wait, then what is there is counted: nothing comes in between.
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

-- Records of a rare model or group among many others.
CREATE INDEX usage_records_model ON usage_records (tenant_id, provider, model_id, timestamp);
CREATE INDEX usage_records_group ON usage_records (tenant_id, group_id, timestamp) WHERE group_id IS NOT NULL;

SELECT pg_temp.tenant_table(name)
FROM unnest(ARRAY['usage_count_deltas', 'usage_totals', 'usage_hour_totals', 'audit_hours']) AS name;
REVOKE INSERT, UPDATE, DELETE ON usage_count_deltas, usage_totals, usage_hour_totals, audit_hours FROM gatehouse_app;
GRANT SELECT, INSERT ON usage_count_deltas_all TO gatehouse_service;
