"""API keys: machine access with the rights of the user who made the key (reference 2, API key).

    enabled  <-> disabled     PATCH is_enabled
    either    -> expired      when `expires_at` passes, whatever `is_enabled` says
    any       -> removed      DELETE; final and immediate

People make their own; those of a service account, which cannot sign in, are made by administrators. Only a SHA-256
digest is stored; the key itself is in the answer to its creation, once.
"""
