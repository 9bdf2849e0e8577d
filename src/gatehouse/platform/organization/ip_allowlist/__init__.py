"""From which addresses an organization's credentials are taken (reference 1, Authentication, 8; reference 2,
Organization settings): by the gateway and by administration alike.

    not enforced <-> enforced     PUT `enabled`; the list stays
"""
