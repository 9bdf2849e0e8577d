"""Members of an organization. Until a person accepts the invitation, the e-mail address identifies the person.
Afterwards the identity on the platform does (docs/portal.md, "Members").

    (none) -> invited      POST; the invitation's token is shown once, and only its hash is stored
    invited -> accepted    the person signs in by single sign-on and presents the token
    any -> removed         DELETE; the member's tokens are refused after the response

An owner (`contact_email` of the organization) is shown as an administrator. The last administrator cannot be
removed.
"""
