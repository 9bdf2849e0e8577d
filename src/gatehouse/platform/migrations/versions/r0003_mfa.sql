-- mfa -------------------------------------------------------------------------------------------------------------
-- When the last access token that the session was given ends: a revocation must live as long.
ALTER TABLE sessions ADD COLUMN tokens_until timestamptz;

-- Sign-ins that lack the second factor still. The token is the user's, only its SHA-256 is here.
CREATE TABLE pending_logins (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- what was shown already (RFC 8176)
    amr jsonb NOT NULL,
    -- nothing is enrolled that could be asked for: all that is open is to enrol
    enrolling boolean NOT NULL,
    wrong integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX pending_logins_user ON pending_logins (user_id);
CREATE INDEX pending_logins_expiry ON pending_logins (expires_at);
SELECT pg_temp.tenant_table('pending_logins');

-- At most one that is in use and one that waits for its first code.
CREATE TABLE mfa_totp (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    sealed_secret text NOT NULL,
    -- the step (30 s since 1970) of the newest code that was taken: no code is good twice
    last_step bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    confirmed_at timestamptz,
    last_used_at timestamptz
);
CREATE UNIQUE INDEX mfa_totp_user ON mfa_totp (user_id, (confirmed_at IS NULL));
SELECT pg_temp.tenant_table('mfa_totp');

CREATE TABLE mfa_passkeys (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    credential_id bytea NOT NULL,
    public_key bytea NOT NULL,
    sign_count bigint NOT NULL,
    name text NOT NULL,
    transports jsonb NOT NULL DEFAULT '[]',
    -- copied between the user's devices, so it proves possession of none of them
    synced boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz
);
CREATE UNIQUE INDEX mfa_passkeys_credential ON mfa_passkeys (tenant_id, credential_id);
CREATE INDEX mfa_passkeys_user ON mfa_passkeys (user_id);
SELECT pg_temp.tenant_table('mfa_passkeys');

CREATE TABLE mfa_recovery_codes (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    used_at timestamptz
);
CREATE INDEX mfa_recovery_codes_user ON mfa_recovery_codes (user_id);
SELECT pg_temp.tenant_table('mfa_recovery_codes');

-- What authenticators are asked to sign: each good once, for five minutes.
CREATE TABLE mfa_challenges (
    challenge bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    purpose text NOT NULL CHECK (purpose IN ('register', 'assert')),
    expires_at timestamptz NOT NULL
);
CREATE INDEX mfa_challenges_user ON mfa_challenges (user_id);
CREATE INDEX mfa_challenges_expiry ON mfa_challenges (expires_at);
SELECT pg_temp.tenant_table('mfa_challenges');

-- Wrong second factors of a user, a row for each span of time that has a bound.
CREATE TABLE mfa_attempts (
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    span_seconds integer NOT NULL,
    since timestamptz NOT NULL,
    wrong integer NOT NULL,
    PRIMARY KEY (user_id, span_seconds)
);
SELECT pg_temp.tenant_table('mfa_attempts');

GRANT DELETE ON pending_logins, mfa_challenges TO gatehouse_service;
