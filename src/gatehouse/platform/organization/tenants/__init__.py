"""Tenants: the platform's rows of organizations, with their entitlements. Jobs of the portal create them.

The row contains the settings of the families in `organization`. Their routes receive it as `own.OwnTenant`.
"""
