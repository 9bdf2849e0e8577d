"""Tenants. The portal's jobs create and delete them through the platform-wide client, or an operator does.

    active -> deleted     DELETE; final. The tenant's users, keys and clients are refused at once; its records stay.

The table is in `organization.tenants`. This chapter manages tenants because a new organization gets its first admin.
"""
