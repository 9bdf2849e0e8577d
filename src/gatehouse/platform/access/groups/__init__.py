"""Groups: whom an organization treats alike (reference 2, Group).

    made -> removed     DELETE; members, overrides, model access rules and content filters go with it, users stay

Who is a member is known to every worker with the user (`platform.live`). An override says what is done about an entity
type in members' requests, in place of what the organization's rules say; without any, those hold.
"""
