-- saml ------------------------------------------------------------------------------------------------------------
CREATE TABLE saml_identity_providers (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    entity_id text NOT NULL,
    sso_url text NOT NULL,
    slo_url text,
    x509_cert text NOT NULL,
    attribute_mapping jsonb,
    is_active boolean NOT NULL DEFAULT true,
    -- whether an operator last changed the provider; only then can it authenticate operators
    by_operator boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX saml_identity_providers_entity ON saml_identity_providers (tenant_id, md5(entity_id));
-- A response names its issuer before the organization of the provider is known.
CREATE INDEX saml_identity_providers_issuer ON saml_identity_providers (md5(entity_id)) WHERE is_active;
SELECT pg_temp.tenant_table('saml_identity_providers');

-- Requests to identity providers that are not answered yet. A response is accepted only once.
CREATE TABLE saml_requests (
    id text PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants,
    idp_id uuid NOT NULL REFERENCES saml_identity_providers ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('login', 'logout')),
    -- digest of the cookie of the browser that began the sign-in; null for a logout
    browser_digest bytea,
    relay_state text,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX saml_requests_idp ON saml_requests (idp_id);
CREATE INDEX saml_requests_expiry ON saml_requests (expires_at);
SELECT pg_temp.tenant_table('saml_requests');

-- Accepted assertions and logout requests, stored until they can no longer be accepted.
CREATE TABLE saml_seen (
    idp_id uuid NOT NULL REFERENCES saml_identity_providers ON DELETE CASCADE,
    message_digest bytea NOT NULL,
    tenant_id uuid NOT NULL REFERENCES tenants,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (idp_id, message_digest)
);
CREATE INDEX saml_seen_expiry ON saml_seen (expires_at);
SELECT pg_temp.tenant_table('saml_seen');

-- The identity provider's name for a session, for logging out.
CREATE TABLE saml_sessions (
    session_id uuid PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tenant_id uuid NOT NULL REFERENCES tenants,
    idp_id uuid NOT NULL REFERENCES saml_identity_providers ON DELETE CASCADE,
    name_id text NOT NULL,
    name_id_attributes jsonb NOT NULL,
    session_index text
);
CREATE INDEX saml_sessions_subject ON saml_sessions (idp_id, md5(name_id));
SELECT pg_temp.tenant_table('saml_sessions');

-- The keys of the service provider itself. One signs; the others are only in the metadata, before or after their use.
CREATE TABLE saml_keys (
    id text PRIMARY KEY,
    certificate text NOT NULL,
    sealed_private text NOT NULL,
    state text NOT NULL CHECK (state IN ('next', 'signing', 'previous')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX saml_keys_one_signs ON saml_keys (state) WHERE state = 'signing';
GRANT SELECT, INSERT, UPDATE, DELETE ON saml_keys TO gatehouse_service;

-- Sign-ins that were not completed, and messages that can no longer be replayed (keeper/housekeeping).
GRANT DELETE ON saml_requests, saml_seen TO gatehouse_service;
