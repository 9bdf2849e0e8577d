"""Errors of share links."""

from gatehouse.foundation.errors import Conflict, NotFound


class ShareLinkNotFound(NotFound):
    """The link does not exist, it is revoked, or its owner was deactivated. The message does not distinguish these
    cases."""

    message = "Share link not found"


class TooManyShareLinks(Conflict):
    code = "too_many_share_links"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A conversation may have at most {limit} share links, including revoked links.")
