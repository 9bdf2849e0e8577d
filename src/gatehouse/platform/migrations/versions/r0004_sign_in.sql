-- sign_in ---------------------------------------------------------------------------------------------------------
-- Sign-in attempts, by the account or the address for which they count (platform/live/tries). They belong to no
-- organization. Keys are digests, so that no address is stored here. A crash of the database may lose the last minute.
CREATE UNLOGGED TABLE sign_in_tries (
    key bytea NOT NULL,
    -- when the first and the last attempt of this row were made
    opened timestamptz NOT NULL,
    ended timestamptz NOT NULL,
    tries bigint NOT NULL,
    PRIMARY KEY (key, opened)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON sign_in_tries TO gatehouse_service;

-- Counts one attempt of every key, or of none if one key has no room in the last `span`. It works like the counters in
-- Redis and in memory (foundation/counters), and gives the same answer. `wait` is the number of seconds until the next
-- slot of `claim` is free.
CREATE FUNCTION gatehouse_take_try(
    keys bytea[], limits bigint[], span interval, bucket interval,
    OUT allowed boolean, OUT claim integer, OUT used bigint, OUT wait double precision
) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    held bigint;
    least bigint;
    frees timestamptz;
BEGIN
    -- The locks are taken in one order, so that two calls that share keys cannot deadlock. They are released when this
    -- statement ends.
    PERFORM pg_advisory_xact_lock(turn)
    FROM (SELECT DISTINCT hashtextextended(encode(k, 'hex'), 0) AS turn FROM unnest(keys) AS k ORDER BY 1) AS turns;
    -- If the clock was set back, the time stands still until the clock has caught up.
    SELECT greatest(clock_timestamp(), max(t.ended)) INTO moment FROM sign_in_tries AS t WHERE t.key = ANY(keys);
    DELETE FROM sign_in_tries AS t WHERE t.key = ANY(keys) AND t.ended <= moment - span;
    FOR i IN 1 .. cardinality(keys) LOOP
        SELECT coalesce(sum(t.tries), 0) INTO held FROM sign_in_tries AS t WHERE t.key = keys[i];
        IF held >= limits[i] THEN
            SELECT min(b.ended) INTO frees
            FROM (SELECT t.ended, held - sum(t.tries) OVER (ORDER BY t.opened) AS left_over
                  FROM sign_in_tries AS t WHERE t.key = keys[i]) AS b
            WHERE b.left_over < limits[i];
            allowed := false;
            claim := i - 1;
            used := held;
            wait := extract(epoch FROM frees + span - moment);
            RETURN;
        END IF;
        IF least IS NULL OR limits[i] - held < least THEN
            least := limits[i] - held;
            claim := i - 1;
            used := held + 1;
        END IF;
    END LOOP;
    UPDATE sign_in_tries AS t SET ended = moment, tries = t.tries + 1
    WHERE t.key = ANY(keys) AND t.opened > moment - bucket;
    INSERT INTO sign_in_tries
    SELECT k, moment, moment, 1 FROM unnest(keys) AS k
    WHERE NOT EXISTS (SELECT FROM sign_in_tries AS t WHERE t.key = k AND t.opened > moment - bucket);
    SELECT min(t.ended) INTO frees FROM sign_in_tries AS t WHERE t.key = keys[claim + 1];
    allowed := true;
    wait := extract(epoch FROM frees + span - moment);
END $$;

-- The session of the browser when it went to the identity provider. The response arrives without the session cookie.
ALTER TABLE saml_requests ADD COLUMN former_digest bytea;
CREATE INDEX saml_requests_browser ON saml_requests (browser_digest) WHERE used_at IS NULL;
