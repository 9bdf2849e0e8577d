-- scim ------------------------------------------------------------------------------------------------------------------
-- The users' addresses as a directory's filter compares them: those that it gave, else the one that signs in.
CREATE FUNCTION gatehouse_addresses(directory jsonb, email text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN directory ? 'emails'
        THEN ARRAY(SELECT lower(entry->>'value') FROM jsonb_array_elements(directory->'emails') entry)
        ELSE ARRAY[lower(email)]
    END
$$;
-- Without a pending list, so that finding somebody takes the same time whoever was changed before.
CREATE INDEX users_addresses ON users USING gin (gatehouse_addresses(directory, email)) WITH (fastupdate = off);

-- Row-level security keeps PostgreSQL from these indexes: it may not call lower() on rows that could be another tenant's.
-- So they are asked as the owner, for the session's tenant.
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
