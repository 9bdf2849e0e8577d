"""What can go wrong with outposts."""

from gatehouse.foundation.errors import Conflict, NotFound


class OutpostNotFound(NotFound):
    message = "Outpost not found"


class OutpostNameTaken(Conflict):
    message = "outpost_name: another outpost of the organization has it."


class OutpostRevoked(Conflict):
    message = "The outpost is revoked: register another one."
