"""What can go wrong with share links."""

from gatehouse.foundation.errors import Conflict, NotFound


class ShareLinkNotFound(NotFound):
    """The same words for a link that never was, is revoked, or whose owner may not show it any more."""

    message = "Share link not found"


class TooManyShareLinks(Conflict):
    code = "too_many_share_links"

    def __init__(self, most: int) -> None:
        super().__init__(f"A conversation may have {most} share links, revoked ones included.")
