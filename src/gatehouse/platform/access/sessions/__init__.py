"""Sessions: signing in with a password, and what follows from it (decisions 3).

    nobody  -> pending      the password was right, a second factor is asked for (`pending`, `access/mfa`)
    nobody  -> open         the password was right and is enough
    pending -> open         the second factor was right too
    open    -> ended        logout, DELETE, a new password, a deactivated user, a refresh token used twice, one more
                            session than the policy allows
    open    -> expired      as the organization's session policy says (`lifetimes`)

A session has a short access token (RS256, 900 s), believed by signature, and a chain of refresh tokens, each good once.
A refresh token that comes back was copied: nobody can tell which of the two is the thief, so the session ends for both.
"""
