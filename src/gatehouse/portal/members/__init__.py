"""Members of an organization: people, by their address until they accept, by who they are on the platform from then on
(reference 2, Cloud portal resources; decisions 8, Members).

    (none) -> invited      POST; the invitation's token is told once, and only its hash is kept
    invited -> accepted    the person signs in and shows the token (single sign-on)
    any -> removed         DELETE; their tokens are refused from the answer on

An owner (`contact_email` of the organization) is shown as an administrator. The last administrator stays.
"""
