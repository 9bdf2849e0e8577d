"""Second factors: authenticator apps (TOTP), passkeys (WebAuthn), recovery codes (docs/mfa.md).

    none -> waiting     enrolment has started: a secret or a challenge was issued
    waiting -> in use   the first right code, or the authenticator's response; the first method adds ten recovery codes
    in use -> none      removed by the user, or by an administrator's reset, which ends the user's sessions too

A factor is verified for a pending login, with an `mfa_token` (`sessions.pending`), or in a session. In a session, later
access tokens contain `mfa_at`, and sensitive operations accept them for `mfa_assertion_ttl_seconds`. The transaction
that accepts a factor also uses up its time step, challenge or recovery code.
"""
