"""What can go wrong with an import."""

from gatehouse.foundation.errors import Conflict, Unavailable


class NotOnPlatform(Conflict):
    message = "The organization is not on the platform yet: see its provisioning_status."


class PlatformUnreachable(Unavailable):
    message = "The platform does not answer now, so nothing was imported. Try again in a moment."
