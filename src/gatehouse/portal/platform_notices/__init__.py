"""What the platform tells the portal of (decisions 8, Wires): dead letters of an organization's webhooks.

The platform proves itself by a token that it signs with the keys of its own `/.well-known/jwks.json`, for the portal
(`aud`) and for this alone (`token_type`). The same may be told again: it makes no second notification.
"""
