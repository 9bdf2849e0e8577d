-- organizations ---------------------------------------------------------------------------------------------------
CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- for good: a cancelled organization keeps its own
    slug text NOT NULL CONSTRAINT organizations_slug UNIQUE,
    plan_tier text NOT NULL CHECK (plan_tier IN ('starter', 'business', 'enterprise')),
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'cancelled')),
    provisioning_status text NOT NULL DEFAULT 'provisioning'
        CHECK (provisioning_status IN ('active', 'provisioning', 'failed', 'unknown')),
    contact_email text,
    billing_email text,
    -- its tenant on the platform: given, or null until it is made
    tenant_id uuid,
    -- of the first API key, which the platform is told by its hash
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
-- What became of a job.
GRANT UPDATE (provisioning_status, tenant_id, updated_at) ON organizations TO gatehouse_service;
