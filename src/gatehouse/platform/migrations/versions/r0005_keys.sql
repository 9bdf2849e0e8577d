-- api keys --------------------------------------------------------------------------------------------------------------
-- `owner`, `administrator` or `system`; null while the key is enabled, and where it was disabled before this was kept
ALTER TABLE api_keys ADD COLUMN disabled_by text;
-- who made the key, and so holds it; null where no person did, and for keys from before this was kept
ALTER TABLE api_keys ADD COLUMN created_by uuid REFERENCES users (id) ON DELETE SET NULL;

-- oauth clients -------------------------------------------------------------------------------------------------------
-- secrets before `previous_secret_digest` that are still accepted: `digest` in hexadecimal, `expires_at` as Unix time
ALTER TABLE oauth_clients ADD COLUMN earlier_secrets jsonb NOT NULL DEFAULT '[]';
