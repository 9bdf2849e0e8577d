"""SCIM 2.0: a directory makes, changes and removes an organization's users and groups (reference 2, SCIM).

    token   made -> removed     by an administrator; good under /api/scim/v2 alone, until it expires
    user    active <-> inactive  `active`; inactive ends sessions and stops keys at once, the record stays
            any -> removed       DELETE; the audit chain forgets who they were (`anonymise`)
    group   made -> removed      DELETE; members stay, what is said of the group goes

The people are the organization's own (`users`, `groups`): a directory finds those that were there before it. It gives
no roles, and has no say about operators; service accounts are none of its business, and it does not see them. Where the
reference is silent, RFC 7643 and 7644 hold.

    routes, service, schemas   tokens, for administrators
    provisioning               the protocol's endpoints
    resources, discovery       what is offered, as the directory is told
    reading, filters, projection   bodies, `filter`, and `attributes`
    people, teams, team_patch  the rules: users and groups
"""
