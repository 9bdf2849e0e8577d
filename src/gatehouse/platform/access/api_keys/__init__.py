"""API keys: machine access with the rights of the user who owns the key (docs/authentication.md).

    enabled  <-> disabled     PATCH is_enabled
    either    -> expired      when `expires_at` passes, regardless of `is_enabled`
    any       -> removed      DELETE; final and immediate

Users create their own keys. Administrators create the keys of service accounts, which cannot sign in. Only a SHA-256
digest is stored; only the response to the creation contains the key itself.
"""
