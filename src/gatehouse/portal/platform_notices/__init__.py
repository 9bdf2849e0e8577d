"""Notices from the platform: dead letters of an organization's webhooks.

The platform authenticates by a token signed with the keys of its `/.well-known/jwks.json`, for the portal (`aud`) and
for notices alone (`token_type`). A repeated notice makes no second notification.
"""
