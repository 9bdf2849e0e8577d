"""Receives notices from the platform about deliveries of an organization's webhooks that have failed permanently (dead
letters).

The platform authenticates with a token that is signed with a key of its `/.well-known/jwks.json`. The token is for the
portal (`aud`), and only for notices (`token_type`). A repeated notice creates no second notification.
"""
