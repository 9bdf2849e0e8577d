"""SCIM 2.0: a directory creates, changes and deletes an organization's users and groups (docs/scim.md).

    token   created -> deleted   by an administrator; valid under /api/scim/v2 only, until it expires
    user    active <-> inactive  `active`; deactivation ends sessions and refuses keys at once; the record stays
            any -> deleted       DELETE; the user is anonymized in the audit chain (`anonymise`)
    group   created -> deleted   DELETE; the members' accounts stay; the group's overrides and access rules are
                                 deleted

A directory manages the organization's own users and groups (`users`, `groups`), including those that existed before it.
It cannot grant roles or change operators, and does not see service accounts. The protocol is RFC 7643 and 7644.

    routes, service, schemas       tokens, for administrators
    provisioning                   the protocol's endpoints
    resources, discovery           the supported resources, and their description for directories
    messages, filters, projection  bodies, `filter`, and `attributes`
    people, teams, team_patch      the rules of users and groups
"""
