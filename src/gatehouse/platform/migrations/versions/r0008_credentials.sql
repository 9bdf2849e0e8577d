-- The default credential of a provider stays in `providers`. These are the further ones.
ALTER TABLE providers ADD COLUMN credential_state text NOT NULL DEFAULT 'active'
    CHECK (credential_state IN ('active', 'draining', 'disabled'));
CREATE TABLE provider_credentials (
    tenant_id uuid NOT NULL REFERENCES tenants,
    provider_id text NOT NULL,
    label text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'draining', 'disabled')),
    -- the secret fields of the provider's kind, as in `providers.sealed_credentials`
    sealed_secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- when the secret was set
    rotated_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, provider_id, label),
    FOREIGN KEY (tenant_id, provider_id) REFERENCES providers (tenant_id, id) ON DELETE CASCADE
);
SELECT pg_temp.tenant_table('provider_credentials');
