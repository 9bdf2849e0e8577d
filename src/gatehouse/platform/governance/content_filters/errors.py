"""Errors of the content filters family. The status of a malformed body is 400."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


class ContentFilterNotFound(NotFound):
    message = "Content filter not found"


class TooManyFilters(Conflict):
    code = "too_many_filters"
    message = "The organization has the maximum number of content filters or of keywords in them. Remove some first."


class BadScope(Unprocessable):
    """`scope` and `group_id` contradict each other, or the group does not exist."""

    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("group_id", fault)])
