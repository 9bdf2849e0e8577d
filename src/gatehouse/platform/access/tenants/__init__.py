"""Tenants. Operators create and delete them, and so do the portal's jobs, through a platform-wide OAuth client.

    active -> deleted     DELETE; final. The tenant's users, keys and clients are refused at once; its records stay.

The table is in `organization.tenants`. The endpoints are in `access`, because they can create a tenant's first admin.
"""
