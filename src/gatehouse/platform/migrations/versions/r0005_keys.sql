-- api keys --------------------------------------------------------------------------------------------------------------
-- `owner`, `administrator` or `system`; null while the key is enabled, and if it was disabled before this was recorded
ALTER TABLE api_keys ADD COLUMN disabled_by text;
-- the person who created the key and so knows it; null if no person did, and for keys from before this was recorded
ALTER TABLE api_keys ADD COLUMN created_by uuid REFERENCES users (id) ON DELETE SET NULL;

-- oauth clients -------------------------------------------------------------------------------------------------------
-- earlier secrets than `previous_secret_digest` that are still accepted: `digest` in hexadecimal, `expires_at` as Unix
-- time
ALTER TABLE oauth_clients ADD COLUMN earlier_secrets jsonb NOT NULL DEFAULT '[]';
