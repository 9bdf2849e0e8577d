"""Tenants: the platform's rows of organizations, with entitlements. The portal's jobs create them.

The row holds the settings of the families in this chapter. Their routes get it as `own.OwnTenant`.
"""
