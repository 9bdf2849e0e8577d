"""What can go wrong with organization tokens."""

from gatehouse.foundation.errors import Conflict


class AlreadyRevoked(Conflict):
    message = "The token is revoked already."
