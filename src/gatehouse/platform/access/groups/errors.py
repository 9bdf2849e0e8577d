"""Errors of groups."""

from collections.abc import Sequence

from gatehouse.foundation.errors import Conflict, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault


class GroupNotFound(NotFound):
    message = "Group not found"


class MemberNotFound(NotFound):
    message = "The user is not a member of the group"


class GroupNameTaken(Conflict):
    code = "group_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a group called {name!r} already.")


class AlreadyMember(Conflict):
    code = "already_member"
    message = "The user is a member of the group already."


class TooManyGroups(Conflict):
    code = "too_many_groups"
    message = "The organization has the maximum number of groups. Remove some first."


class BadOverrides(Unprocessable):
    """Invalid overrides. `faults` are pairs of the position in the body and the message about its `entity_type`."""

    def __init__(self, faults: Sequence[tuple[int, str]]) -> None:
        super().__init__(faults=[ParameterFault(("body", index, "entity_type"), message) for index, message in faults])
