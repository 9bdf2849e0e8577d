-- Applications that act for the people who sign in to them: the scopes that a client may have for these people, and
-- revocations of single grants.
ALTER TABLE oauth_clients ADD COLUMN user_scopes jsonb NOT NULL DEFAULT '[]';
ALTER TABLE revocations DROP CONSTRAINT revocations_kind_check,
    ADD CONSTRAINT revocations_kind_check CHECK (kind IN ('session', 'oauth_client', 'grant'));
