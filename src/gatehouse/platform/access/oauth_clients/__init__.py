"""OAuth clients: machines with a secret, which they trade for tokens at `POST /oauth/token` (reference 2).

    enabled <-> disabled     update `enabled`; disabled, its tokens stop at once
    any      -> removed      DELETE; its tokens stop at once, or live on until they expire (OAUTH_DELETE_REVOKES_TOKENS)
    any      -> same         rotate-secret; the secret before is accepted for OAUTH_SECRET_GRACE_SECONDS more, those
                             before it until their own ends, three at most

A client belongs to a tenant, or to none: platform-wide clients are the operators' alone. Nobody hands out what they
lack: see `grants`.
"""
