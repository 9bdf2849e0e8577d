"""Single sign-on: members sign in at the platform, and act here with a token of their organization (reference 2, Cloud
portal; decisions 8, Members and SSO session).

    nobody -> begun      GET login: off to the platform; state, nonce and verifier stay in the browser, sealed
    begun -> session     GET callback: they belong to one organization; a cookie holds its token
    begun -> arrived     to several, or to none, or they came for an invitation: a partial token says who they are, and
                         nothing else
    arrived -> session   POST select-org, or accept-invite with an invitation's token
    session -> session   POST refresh: another token; select-org: one of another organization. The old one is refused
    session -> over      POST logout, or the token's end; and the member's removal, at once

No token is good twelve hours after the sign-in that it comes from: then the platform is asked again whether the person
is still one of its own.

A person is who the platform says (`sub` in a tenant), never an address: whoever is given an address anew is not the
member who had it.
"""
