"""Errors of an import."""

from gatehouse.foundation.errors import Conflict, Unavailable


class NotOnPlatform(Conflict):
    message = "The organization does not exist on the platform yet: see its provisioning_status."


class PlatformUnreachable(Unavailable):
    # It is unknown whether the platform has imported parts of the file.
    message = "The platform did not respond as expected. Try again in a moment: parts that were imported are skipped."
