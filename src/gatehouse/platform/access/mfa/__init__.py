"""Second factors: authenticator apps (TOTP), passkeys (WebAuthn), recovery codes (decisions 3, reference 2 MFA policy).

    none -> waiting     enrolment has begun: a secret was shown, a challenge was given
    waiting -> in use   the first right code, or the authenticator's answer; with the first method come ten recovery
                        codes
    in use -> none      removed by the user, or by an administrator's reset, which ends the user's sessions too

Who shows one is either somebody signing in, with an `mfa_token` (`sessions.pending`), or a user in a session, who steps
up: their access tokens carry `mfa_at` from then on, which sensitive operations believe for `mfa_assertion_ttl_seconds`.
Nothing is good twice: a code's step, a challenge and a recovery code are used up, in the same transaction.
"""
