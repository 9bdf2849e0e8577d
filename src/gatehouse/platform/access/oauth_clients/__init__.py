"""OAuth clients: machines with a secret, which they exchange for tokens at `POST /oauth/token`.

    enabled <-> disabled     update `enabled`; the tokens of a disabled client are refused at once
    any      -> removed      DELETE; tokens are refused at once, or expire (OAUTH_DELETE_REVOKES_TOKENS)
    any      -> same         rotate-secret; the previous secret is accepted for OAUTH_SECRET_GRACE_SECONDS more, earlier
                             ones until their own expiry, three in all

A client belongs to a tenant, or to none: only operators manage platform-wide clients. A caller cannot grant what it
lacks: see `grants`.
"""
