-- organization ----------------------------------------------------------------------------------------------------
ALTER TABLE tenants
    ADD COLUMN contact_email text,
    -- contains only fields that were set; other fields have defaults (organization/policies)
    ADD COLUMN session_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN mfa_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN mfa_policy_changed_at timestamptz,
    ADD COLUMN ip_allowlist jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN retention_policy jsonb NOT NULL DEFAULT '{}';

ALTER TABLE allowed_domains
    -- the value that the TXT record of the domain must have
    ADD COLUMN challenge text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    ADD CONSTRAINT allowed_domains_group FOREIGN KEY (default_group_id) REFERENCES groups ON DELETE SET NULL;
CREATE INDEX allowed_domains_default_group ON allowed_domains (default_group_id) WHERE default_group_id IS NOT NULL;
