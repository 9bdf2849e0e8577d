-- organization ----------------------------------------------------------------------------------------------------
ALTER TABLE tenants
    ADD COLUMN contact_email text,
    -- only what was set; what was not has its default (organization/policies)
    ADD COLUMN session_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN mfa_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN mfa_policy_changed_at timestamptz,
    ADD COLUMN ip_allowlist jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN retention_policy jsonb NOT NULL DEFAULT '{}';
