"""Tenants, made and ended by the portal's jobs through the platform-wide client, or by an operator (decisions 2).

    active -> deleted     DELETE; final. Whatever belongs to it stops at once, and its records stay.

The rows are `organization.tenants`'; they are managed here because a new organization gets its first admin.
"""
