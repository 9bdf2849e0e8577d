"""Single sign-on: members sign in at the platform, and get a token of their organization (docs/portal-sign-in.md).

    (none) -> started    GET login: redirects to the platform; state, nonce and verifier stay in the browser, sealed
    started -> session   GET callback: the person belongs to one organization; a cookie contains its token
    started -> partial   the person belongs to several or none, or opened an invitation: a partial token identifies
                         them, and grants nothing else
    partial -> session   POST select-org, or accept-invite with an invitation's token
    session -> session   POST refresh: another token; select-org: one of another organization. The old one is refused
    session -> ended     POST logout, or the token's end; or at once, when the member is removed

All tokens of a sign-in expire within twelve hours after it: then the platform checks again whether the person is still
one of its users.

A person is identified by the platform's `sub` and tenant, never by an address: an address that is given to another
person does not make that person the member.
"""
