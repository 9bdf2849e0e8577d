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
-- A table of its own, so that reading preferences does not read pictures.
CREATE TABLE user_avatars (
    user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    png bytea NOT NULL,
    -- digest of the picture; a part of its URL, so that clients can cache it permanently
    digest text NOT NULL
);
CREATE INDEX user_avatars_tenant ON user_avatars (tenant_id);
SELECT pg_temp.tenant_table('user_avatars');
