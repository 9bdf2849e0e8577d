-- members ---------------------------------------------------------------------------------------------------------
CREATE TABLE members (
    id uuid PRIMARY KEY,
    org_id uuid NOT NULL REFERENCES organizations,
    email text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    -- digest of the invitation's token; null after the invitation has been accepted
    invite_digest bytea UNIQUE,
    invite_expires_at timestamptz,
    -- the person's identity on the platform: subject and tenant
    platform_sub text,
    platform_tenant_id uuid,
    invited_at timestamptz NOT NULL DEFAULT now(),
    accepted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT members_email UNIQUE (org_id, email)
);
CREATE UNIQUE INDEX members_person ON members (org_id, platform_tenant_id, platform_sub);
CREATE INDEX members_memberships ON members (platform_tenant_id, platform_sub);
SELECT pg_temp.org_table('members');
-- The service role stores the identity of the owner, which the platform reports.
GRANT UPDATE (platform_sub, platform_tenant_id) ON members TO gatehouse_service;
