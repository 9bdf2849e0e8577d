"""Tenants: organizations as the platform knows them, made by the portal's jobs (decisions 2), with entitlements.

Their row holds what the families of this chapter set; `own.OwnTenant` hands it to their routes.
"""
