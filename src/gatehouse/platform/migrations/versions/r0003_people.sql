-- people ----------------------------------------------------------------------------------------------------------
CREATE TABLE user_preferences (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    default_model_id text,
    preferred_models jsonb NOT NULL DEFAULT '[]',
    default_summarizer_model_id text,
    theme text NOT NULL DEFAULT 'system' CHECK (theme IN ('system', 'light', 'dark'))
);
CREATE INDEX user_preferences_tenant ON user_preferences (tenant_id);
SELECT pg_temp.tenant_table('user_preferences');
-- Apart, so that whoever reads preferences does not read pictures.
CREATE TABLE user_avatars (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    png bytea NOT NULL,
    -- of the picture; part of its address, so that it can be kept for good
    digest text NOT NULL
);
CREATE INDEX user_avatars_tenant ON user_avatars (tenant_id);
SELECT pg_temp.tenant_table('user_avatars');
