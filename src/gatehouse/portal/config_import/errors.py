"""Errors of an import."""

from gatehouse.foundation.errors import Conflict, Unavailable


class NotOnPlatform(Conflict):
    message = "The organization is not on the platform yet: see its provisioning_status."


class PlatformUnreachable(Unavailable):
    # Whether the platform has imported anything is unknown.
    message = "The platform did not respond properly. Try again in a moment: parts that were imported stay imported."
