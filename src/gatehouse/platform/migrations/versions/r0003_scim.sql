-- scim ------------------------------------------------------------------------------------------------------------
CREATE TABLE scim_tokens (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    description text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    created_by uuid REFERENCES users ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    expires_at timestamptz
);
CREATE INDEX scim_tokens_listing ON scim_tokens (tenant_id, created_at DESC, id);
CREATE INDEX scim_tokens_maker ON scim_tokens (created_by);
SELECT pg_temp.tenant_table('scim_tokens');
GRANT UPDATE (last_used_at) ON scim_tokens TO gatehouse_service;

ALTER TABLE users
    -- the directory's name for the user, or else the user's address
    ADD COLUMN user_name text,
    -- attributes of the directory that have no column of their own, such as names, addresses and department
    ADD COLUMN directory jsonb NOT NULL DEFAULT '{}';
-- The directory's display name of the member.
ALTER TABLE group_members ADD COLUMN display text;
CREATE UNIQUE INDEX users_user_name ON users (tenant_id, lower(COALESCE(user_name, email)));
CREATE INDEX users_external_id ON users (tenant_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX users_provisioning ON users (tenant_id, created_at, id) WHERE kind = 'user';
CREATE INDEX groups_provisioning ON groups (tenant_id, created_at, id);
CREATE INDEX groups_external_group_id ON groups (tenant_id, external_group_id) WHERE external_group_id IS NOT NULL;

-- Removes a deleted user from up to `most` audit events, and returns the number of changed events. The events and their
-- hashes stay, because the hashes cover a salted digest of the removed values. The function runs as the owner, because
-- no other role may change an event. It refuses users who still exist, so it cannot be used to hide the actions of a
-- user.
CREATE FUNCTION gatehouse_anonymise(tenant uuid, person uuid, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    done bigint;
BEGIN
    IF EXISTS (SELECT FROM users WHERE id = person) THEN
        RAISE EXCEPTION 'the user is still there';
    END IF;
    WITH found AS (
        SELECT sequence, timestamp FROM audit_events
        WHERE tenant_id = tenant
          AND (actor_id = person::text
               OR (resource_type = 'user' AND resource_id = person::text AND salt IS NOT NULL))
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
REVOKE EXECUTE ON FUNCTION gatehouse_anonymise FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gatehouse_anonymise TO gatehouse_service;
