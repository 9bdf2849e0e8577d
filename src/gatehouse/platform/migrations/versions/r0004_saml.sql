-- saml ------------------------------------------------------------------------------------------------------------
-- When a session ends however much it is used: the identity provider that it came from says so.
ALTER TABLE sessions ADD COLUMN not_after timestamptz;
