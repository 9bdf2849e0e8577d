"""OAuth clients: machines that exchange a secret for access tokens at `POST /oauth/token`.

    enabled <-> disabled     update `enabled`; the tokens of a disabled client are refused at once
    any      -> removed      DELETE; tokens are refused at once, or expire (OAUTH_DELETE_REVOKES_TOKENS)
    any      -> same         rotate-secret; the previous secret is valid for OAUTH_SECRET_GRACE_SECONDS more,
                             earlier secrets until their own expiry; at most three are valid besides the new one

A client belongs to a tenant, or is platform-wide and belongs to none. Only operators manage platform-wide clients. A
caller cannot grant rights that it lacks: see `service`.
"""
