-- scim ------------------------------------------------------------------------------------------------------------------
-- The addresses of users as the filter of a directory compares them: the addresses that the directory set, or else the
-- address of the sign-in.
CREATE FUNCTION gatehouse_addresses(directory jsonb, email text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN directory ? 'emails'
        THEN ARRAY(SELECT lower(entry->>'value') FROM jsonb_array_elements(directory->'emails') entry)
        ELSE ARRAY[lower(email)]
    END
$$;
-- The index has no pending list, so that a search takes the same time after any change.
CREATE INDEX users_addresses ON users USING gin (gatehouse_addresses(directory, email)) WITH (fastupdate = off);

-- Row-level security prevents PostgreSQL from using these indexes, because it may not call lower() on rows that could
-- belong to another tenant. So these functions query as the owner, for the tenant of the session.
CREATE FUNCTION gatehouse_users_by_name(name text) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT array_agg(id) FROM users
    WHERE tenant_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid
      AND lower(COALESCE(user_name, email)) = lower(name)
$$;
CREATE FUNCTION gatehouse_users_by_address(address text) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT array_agg(id) FROM users
    WHERE tenant_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid
      AND gatehouse_addresses(directory, email) @> ARRAY[lower(address)]
$$;
CREATE FUNCTION gatehouse_users_by_username(name text) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT array_agg(id) FROM users
    WHERE tenant_id = NULLIF(current_setting('gatehouse.tenant', true), '')::uuid AND lower(username) = lower(name)
$$;
REVOKE EXECUTE ON FUNCTION gatehouse_users_by_name, gatehouse_users_by_address, gatehouse_users_by_username FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_users_by_name, gatehouse_users_by_address, gatehouse_users_by_username
    TO gatehouse_app;
