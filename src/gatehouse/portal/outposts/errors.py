"""Errors of outposts."""

from gatehouse.foundation.errors import Conflict, NotFound


class OutpostNotFound(NotFound):
    message = "Outpost not found"


class OutpostNameTaken(Conflict):
    message = "outpost_name: another outpost of the organization has it."


class TooManyOutposts(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The organization has {limit} outposts, which is the maximum: revoke one that is not used.")


class OutpostRevoked(Conflict):
    message = "The outpost is revoked: register another one."
