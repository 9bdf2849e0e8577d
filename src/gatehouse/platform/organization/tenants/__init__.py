"""Tenants: organizations as the platform knows them, made by the portal's jobs (decisions 2), with entitlements."""
