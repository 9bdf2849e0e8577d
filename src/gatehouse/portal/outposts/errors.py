"""Errors of outposts."""

from gatehouse.foundation.errors import Conflict, NotFound


class OutpostNotFound(NotFound):
    message = "Outpost not found"


class OutpostNameTaken(Conflict):
    message = "outpost_name: another outpost of the organization has this name."


class TooManyOutposts(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The organization has {limit} outposts, which is the maximum: revoke an unused one first.")


class OutpostRevoked(Conflict):
    message = "The outpost has been revoked: register a new one."
