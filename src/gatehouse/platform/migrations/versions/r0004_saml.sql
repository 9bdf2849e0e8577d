-- saml ------------------------------------------------------------------------------------------------------------
-- The time at which a session ends even if it is used. The identity provider of the session sets it.
ALTER TABLE sessions ADD COLUMN not_after timestamptz;
