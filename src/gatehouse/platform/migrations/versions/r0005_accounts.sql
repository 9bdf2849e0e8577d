-- accounts --------------------------------------------------------------------------------------------------------
-- Who may create accounts with addresses of a domain: its identity provider (jit_provisioning), and strangers who
-- register.
ALTER TABLE allowed_domains ADD COLUMN self_registration boolean NOT NULL DEFAULT false;

ALTER TABLE users
    -- created by POST /api/auth/register without an invitation
    ADD COLUMN self_registered boolean NOT NULL DEFAULT false,
    -- when the person proved that the address is theirs: with an invitation, or at the organization's identity provider
    ADD COLUMN address_proven_at timestamptz,
    -- since when the account belongs to the organization's identity provider or directory; null for a local account
    ADD COLUMN linked_at timestamptz;
UPDATE users u SET address_proven_at = t.used_at
    FROM one_time_tokens t WHERE t.user_id = u.id AND t.purpose = 'invitation' AND t.used_at IS NOT NULL
      AND t.created_by IS NOT NULL;
UPDATE users u SET linked_at = now()
    WHERE user_name IS NOT NULL
       OR EXISTS (SELECT FROM saml_sessions m JOIN sessions s ON s.id = m.session_id WHERE s.user_id = u.id);
UPDATE users SET self_registered = true WHERE id::text IN (
    SELECT resource_id FROM audit_events
    WHERE action = 'user.registered' AND details @> '{"invited": false}');
-- A verified domain also verifies the addresses that existed before.
UPDATE users u SET email_verified = true FROM allowed_domains d
    WHERE d.tenant_id = u.tenant_id AND d.verified_at IS NOT NULL AND NOT u.email_verified
      AND d.domain = split_part(lower(u.email), '@', 2);

-- Whether an identity provider may begin a sign-in by itself.
ALTER TABLE saml_identity_providers ADD COLUMN allow_idp_initiated boolean NOT NULL DEFAULT false;
