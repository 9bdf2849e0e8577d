"""Errors of organization tokens."""

from gatehouse.foundation.errors import Conflict, NotFound


class TokenNotFound(NotFound):
    message = "No token of this organization has this jti."


class AlreadyRevoked(Conflict):
    message = "The token has already been revoked."
