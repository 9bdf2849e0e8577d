-- When somebody last changed a key: the version that `If-Match` names. Uses of the key do not change it.
ALTER TABLE api_keys ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
