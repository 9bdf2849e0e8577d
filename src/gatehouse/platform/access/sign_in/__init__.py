"""The sign-in page, and what people do around it (decisions 3).

    /login                   e-mail and password, or a way to the organization's identity providers
    /login/second-factor     what the password lacks; /login/enrol where there is none and the organization wants one
    /login/reset, /login/invitation   a password for an administrator's one-time token
    /logout                  ends the session of this browser

    stranger -> pending      the password is right and more is asked for: a short-lived cookie holds the `mfa_token`
    stranger, pending -> signed in   a new session and a new cookie (`access.browser`)

Forms all the way, so it works without scripts but for passkeys. Every form carries a proof that it came from a page of
ours (`proof`), and goes on to a path of ours alone (`paths`). Refusals are the API's own, in the API's words.
"""
