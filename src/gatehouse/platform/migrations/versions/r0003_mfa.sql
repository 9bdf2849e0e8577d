-- mfa -------------------------------------------------------------------------------------------------------------
-- The time at which the last access token of the session expires. A revocation must live until then.
ALTER TABLE sessions ADD COLUMN tokens_until timestamptz;

-- Sign-ins that still lack the second factor. The user has the token; the table has only its SHA-256 digest.
CREATE TABLE pending_logins (
    digest bytea PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    -- methods that the user has already passed (RFC 8176)
    amr jsonb NOT NULL,
    -- the user has no second factor, so the sign-in can only continue with an enrolment
    enrolling boolean NOT NULL,
    wrong integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX pending_logins_user ON pending_logins (user_id);
CREATE INDEX pending_logins_expiry ON pending_logins (expires_at);
SELECT pg_temp.tenant_table('pending_logins');

-- At most one that is in use, and one that waits for its first code.
CREATE TABLE mfa_totp (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    sealed_secret text NOT NULL,
    -- the step (30 seconds, counted since 1970) of the newest accepted code; no code is accepted twice
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
    -- a passkey that is copied between the user's devices, so it does not prove possession of a device
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

-- Challenges that authenticators sign. Each is valid once, for five minutes.
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

-- The number of wrong second factors of a user, with one row for each period that has a limit.
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
