"""Single sign-on: members sign in at the platform, and receive a token of their organization (docs/portal-sign-in.md).

    (none) -> started    GET login: redirects to the platform; the browser stores state, nonce and verifier, sealed
    started -> session   GET callback, if the person belongs to one organization; a cookie contains its token
    started -> partial   GET callback, if the person belongs to several organizations or none, or has opened an
                         invitation; a partial token identifies the person, and gives no other right
    partial -> session   POST select-org, or accept-invite with an invitation's token
    session -> session   POST refresh (a new token) or select-org (a token of another organization); the old
                         token is refused
    session -> ended     POST logout, the expiry of the token, or the removal of the member

All tokens of a sign-in expire within twelve hours after it. Then the platform checks again whether the person is still
one of its users.

A person is identified by the `sub` and the tenant of the platform, never by the address. If an address is given to
another person, that person does not become the member.
"""
