-- model aliases
CREATE TABLE model_aliases (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    description text,
    enabled boolean NOT NULL,
    balance text NOT NULL CHECK (balance IN ('weighted', 'least_busy', 'lowest_latency')),
    sticky boolean NOT NULL,
    deployments jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, name)
);
SELECT pg_temp.tenant_table('model_aliases');

-- usage records: the alias and the deployments of a request ------------------------------------------------------------
ALTER TABLE usage_records
    ADD COLUMN model_alias text,
    -- whether the request is a copy for a shadow, whose answer was discarded
    ADD COLUMN shadow boolean NOT NULL DEFAULT false,
    -- label of the credential with which the model was called, where its provider has several
    ADD COLUMN credential text;
CREATE INDEX usage_records_alias ON usage_records (tenant_id, model_alias, timestamp) WHERE model_alias IS NOT NULL;
