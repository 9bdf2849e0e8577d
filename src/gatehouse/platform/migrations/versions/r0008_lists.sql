-- Indexes for the orders and filters of the lists of users and API keys. With them, a page of a large list is read
-- without the rest of the list.

-- The name by which a list shows and sorts a user.
CREATE FUNCTION gatehouse_user_name(display_name text, email text, username text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT COALESCE(display_name, CASE WHEN email NOT LIKE '%@no-address.invalid' THEN email END, username, email)
$$;
CREATE INDEX users_list_name ON users (tenant_id, lower(gatehouse_user_name(display_name, email, username)), id);
-- The list sorts equal times by id in the same direction as the times. This index replaces `users_listing`, which
-- processes of version 0007 still use. A later migration drops that one.
CREATE INDEX users_list_created ON users (tenant_id, created_at, id);
CREATE INDEX users_list_login ON users (tenant_id, COALESCE(last_login_at, '-infinity'), id);
CREATE INDEX users_list_role ON users (tenant_id, role, created_at, id);
CREATE INDEX users_list_inactive ON users (tenant_id, created_at, id) WHERE is_active IS FALSE;
CREATE INDEX users_list_services ON users (tenant_id, created_at, id) WHERE kind = 'service';

CREATE INDEX api_keys_list_created ON api_keys (tenant_id, created_at, id);
CREATE INDEX api_keys_list_description ON api_keys (tenant_id, lower(description), id);
CREATE INDEX api_keys_list_expiry ON api_keys (tenant_id, COALESCE(expires_at, 'infinity'), id);
CREATE INDEX api_keys_list_disabled ON api_keys (tenant_id, created_at, id) WHERE is_enabled IS FALSE;
-- `last_used` changes every minute, its day once a day. An index on the day leaves most updates in the page of the row
-- (HOT). The keys of a day are sorted when the list is read.
ALTER TABLE api_keys SET (fillfactor = 85);
ALTER TABLE api_keys ADD COLUMN last_used_day date NOT NULL
    GENERATED ALWAYS AS (COALESCE((last_used AT TIME ZONE 'UTC')::date, '0001-01-01')) STORED;
CREATE INDEX api_keys_list_used ON api_keys (tenant_id, last_used_day);

-- All sequences of three characters of a text in lower case, each after the end of the tenant's id. A text that
-- contains another text contains all its sequences. So an index finds a part of a text without an extension.
CREATE FUNCTION gatehouse_trigrams(tenant uuid, value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    lowered constant text := lower(value);
    prefix constant text := right(tenant::text, 6);
    sequences text[] := '{}';
BEGIN
    FOR start IN 1 .. length(lowered) - 2 LOOP
        sequences[start] := prefix || substr(lowered, start, 3);
    END LOOP;
    RETURN sequences;
END $$;
CREATE INDEX users_trigrams ON users USING gin (
    gatehouse_trigrams(tenant_id, email || E'\n' || COALESCE(username, '') || E'\n' || COALESCE(display_name, ''))
) WITH (fastupdate = off);
CREATE INDEX api_keys_trigrams ON api_keys USING gin (
    gatehouse_trigrams(tenant_id, description || E'\n' || key_prefix)
) WITH (fastupdate = off);

-- Row-level security prevents PostgreSQL from using these indexes, because it may not compare texts of rows that could
-- belong to another tenant. So these functions query as the owner, for the tenant of the session. They return null for
-- less than three characters, and if more than `most` rows match.
CREATE FUNCTION gatehouse_users_with(part text, most integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    tenant constant uuid := NULLIF(current_setting('gatehouse.tenant', true), '')::uuid;
    pattern constant text := '%' || regexp_replace(part, '([\\%_])', '\\\1', 'g') || '%';
    ids uuid[];
BEGIN
    IF length(part) < 3 THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(id) INTO ids FROM (
        SELECT id FROM users
        WHERE tenant_id = tenant AND gatehouse_trigrams(
            tenant_id, email || E'\n' || COALESCE(username, '') || E'\n' || COALESCE(display_name, '')
        ) @> gatehouse_trigrams(tenant, part)
        AND (email ILIKE pattern OR username ILIKE pattern OR display_name ILIKE pattern)
        LIMIT most + 1
    ) AS matching;
    RETURN CASE WHEN cardinality(ids) > most THEN NULL ELSE COALESCE(ids, '{}') END;
END $$;
CREATE FUNCTION gatehouse_api_keys_with(part text, most integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    tenant constant uuid := NULLIF(current_setting('gatehouse.tenant', true), '')::uuid;
    pattern constant text := '%' || regexp_replace(part, '([\\%_])', '\\\1', 'g') || '%';
    owners constant uuid[] := gatehouse_users_with(part, most);
    ids uuid[];
BEGIN
    IF owners IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(id) INTO ids FROM (
        SELECT id FROM (
            SELECT id FROM api_keys WHERE tenant_id = tenant AND user_id = ANY(owners) LIMIT most + 1
        ) AS owned
        UNION
        SELECT id FROM (
            SELECT id FROM api_keys
            WHERE tenant_id = tenant
                AND gatehouse_trigrams(tenant_id, description || E'\n' || key_prefix) @> gatehouse_trigrams(tenant, part)
                AND (description ILIKE pattern OR key_prefix ILIKE pattern)
            LIMIT most + 1
        ) AS named
    ) AS matching;
    RETURN CASE WHEN cardinality(ids) > most THEN NULL ELSE COALESCE(ids, '{}') END;
END $$;
REVOKE EXECUTE ON FUNCTION gatehouse_users_with, gatehouse_api_keys_with FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_users_with, gatehouse_api_keys_with TO gatehouse_app;
