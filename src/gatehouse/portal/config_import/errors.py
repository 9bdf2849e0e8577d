"""What can go wrong with an import."""

from gatehouse.foundation.errors import Conflict, Unavailable


class NotOnPlatform(Conflict):
    message = "The organization is not on the platform yet: see its provisioning_status."


class PlatformUnreachable(Unavailable):
    # Whether it has done what it was asked, nobody here knows.
    message = "No good answer came from the platform. Try again in a moment: what it may have imported stays as it is."
