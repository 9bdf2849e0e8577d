"""Groups of users with the same rights and rules (docs/groups.md).

    created -> deleted     DELETE; members, overrides, model access rules and content filters are deleted with it

Every worker loads a user's memberships together with the user (`platform.live`). In the requests of a group's members,
an override of the group sets the action for an entity type and replaces the organization's rules for it. Without an
override the organization's rules apply.
"""
