"""The sign-in pages (docs/sign-in.md).

    /login                   e-mail and password, or links to the organization's identity providers
    /login/second-factor     verifies a second factor; /login/enrol enrols a required one
    /login/reset, /login/invitation   set a password with a one-time token from an administrator or a mail
    /login/forgot            sends a mail with a link to /login/reset
    /login/confirm-address   confirms the address with the token from a mail
    /logout                  ends the session of this browser

    anonymous -> pending     the password is right, a second factor is required: a cookie contains the `mfa_token`
    anonymous, pending -> signed in   a new session and a new cookie (`access.browser`)

All pages are forms, so they work without scripts, except for passkeys. Every form contains a proof that it came from a
page of this platform (`proof`). The pages redirect only to paths of this platform (`paths`), and show the error
messages of the API.
"""
