"""Groups of users with the same rights and rules (docs/groups.md).

    created -> deleted     DELETE; members, overrides, model access rules and content filters are deleted with it

Every worker has a user's memberships together with the user (`platform.live`). An override sets the action for an
entity type in members' requests, in place of the organization's rules; without an override those apply.
"""
