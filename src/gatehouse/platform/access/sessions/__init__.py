"""Sessions: signing in with a password, and what follows from it (decisions 3).

    open -> ended       logout, DELETE, a new password, a deactivated user, a refresh token used twice
    open -> expired     no refresh for 30 days

A session has a short access token (RS256, 900 s), believed by signature, and a chain of refresh tokens, each good once.
A refresh token that comes back was copied: nobody can tell which of the two is the thief, so the session ends for both.
"""
