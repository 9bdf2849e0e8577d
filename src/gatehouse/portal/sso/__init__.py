"""Single sign-on: members sign in at the platform, and act here with a token of their organization (reference 2, Cloud
portal; decisions 8, Members and SSO session).

    nobody -> begun      GET login: off to the platform; state, nonce and verifier stay in the browser, sealed
    begun -> session     GET callback: they belong to one organization; a cookie holds its token
    begun -> arrived     to several, or to none: a partial token says who they are, and nothing else
    arrived -> session   POST select-org, or accept-invite with an invitation's token
    session -> session   POST refresh: another token; the old one is refused. Until twelve hours after the sign-in
    session -> over      POST logout, or the token's end; and the member's removal, at once

A person is who the platform says (`sub` in a tenant), never an address: whoever is given an address anew is not the
member who had it.
"""
