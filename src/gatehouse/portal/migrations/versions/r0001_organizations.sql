-- organizations ---------------------------------------------------------------------------------------------------
CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- unique for ever: a cancelled organization keeps its slug
    slug text NOT NULL CONSTRAINT organizations_slug UNIQUE,
    plan_tier text NOT NULL CHECK (plan_tier IN ('starter', 'business', 'enterprise')),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'cancelled')),
    provisioning_status text NOT NULL DEFAULT 'provisioning'
        CHECK (provisioning_status IN ('active', 'provisioning', 'failed', 'unknown')),
    contact_email text,
    billing_email text,
    -- its tenant on the platform: an existing tenant, or null until the tenant has been created
    tenant_id uuid,
    -- prefix and digest of the first API key; the platform receives only the digest
    key_prefix text NOT NULL,
    key_digest bytea NOT NULL,
    tokens_revoked_before timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    cancelled_at timestamptz
);
CREATE UNIQUE INDEX organizations_tenant ON organizations (tenant_id) WHERE status = 'active';
SELECT pg_temp.org_table('organizations', 'id');
REVOKE DELETE ON organizations FROM gatehouse_app;
-- The service role stores the results of jobs.
GRANT UPDATE (provisioning_status, tenant_id, updated_at) ON organizations TO gatehouse_service;
