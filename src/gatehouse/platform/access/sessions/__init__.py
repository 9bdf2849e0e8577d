"""Sessions: password sign-in, refresh and sign-out (docs/sessions.md).

    none    -> pending      the password is right, a second factor is required (`pending`, `access/mfa`)
    none    -> open         the password is right and sufficient
    pending -> open         the second factor is right too
    open    -> ended        logout, DELETE, a new password, a deactivated user, a refresh token used twice, one more
                            session than the policy allows
    open    -> expired      by the organization's session policy (`lifetimes`)

A session has a short access token (RS256, at most 900 s), which is verified by its signature, and a chain of refresh
tokens, each valid once. A refresh token that is used twice was copied. The thief cannot be distinguished from the
owner, so the session ends.
"""
