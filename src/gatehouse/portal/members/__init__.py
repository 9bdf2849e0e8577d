"""Members of an organization: people, known by their address until they accept, and by their identity on the
platform afterwards (docs/portal.md, "Members").

    (none) -> invited      POST; the invitation's token is shown once, and only its hash is stored
    invited -> accepted    the person signs in and presents the token (single sign-on)
    any -> removed         DELETE; their tokens are refused from the response on

An owner (`contact_email` of the organization) is shown as an administrator. The last administrator cannot be
removed.
"""
