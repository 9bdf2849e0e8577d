"""Tenants, created and deleted by the portal's jobs through the platform-wide client, or by an operator.

    active -> deleted     DELETE; final. Its users, keys and clients are refused at once, and its records stay.

The table is in `organization.tenants`. Tenants are managed here because a new organization gets its first admin.
"""
