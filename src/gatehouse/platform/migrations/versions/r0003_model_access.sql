-- model_access ----------------------------------------------------------------------------------------------------
-- The model is stored by its name and not by its row, so that a DENY also applies to an entry that is removed and added
-- again.
CREATE TABLE group_model_access (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    group_id uuid NOT NULL REFERENCES groups ON DELETE CASCADE,
    model_id text NOT NULL,
    access_type text NOT NULL CHECK (access_type IN ('ALLOW', 'DENY')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT group_model_access_once UNIQUE (group_id, model_id)
);
CREATE INDEX group_model_access_tenant ON group_model_access (tenant_id);
SELECT pg_temp.tenant_table('group_model_access');
