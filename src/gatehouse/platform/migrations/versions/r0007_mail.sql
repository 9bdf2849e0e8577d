-- Links that are sent by mail (platform/access/users/mailing.py).
ALTER TABLE one_time_tokens
    DROP CONSTRAINT one_time_tokens_purpose_check,
    ADD CONSTRAINT one_time_tokens_purpose_check
        CHECK (purpose IN ('invitation', 'password_reset', 'address_confirmation')),
    -- Sent by mail and shown to nobody else, so that the token proves the address.
    ADD COLUMN by_mail boolean NOT NULL DEFAULT false,
    -- Stored only until the mail is sent or has failed.
    ADD COLUMN sealed_token text,
    ADD COLUMN mailed_at timestamptz;
-- The user can sign in with a password only after the address is confirmed.
ALTER TABLE users ADD COLUMN awaits_confirmation boolean NOT NULL DEFAULT false;
