"""Errors of suppressions and custom patterns. The status of a malformed body is 400, as on all paths below
`dlp-rules`."""

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable


class SuppressionNotFound(NotFound):
    message = "Suppression not found"


class CustomPatternNotFound(NotFound):
    message = "Custom pattern not found"


class UnknownPattern(Unprocessable):
    def __init__(self, pattern_id: str) -> None:
        message = (
            f"{pattern_id!r} is not a built-in pattern. GET /api/admin/dlp-rules/available-patterns lists their ids."
        )
        super().__init__(faults=[FieldFault("pattern_id", message)])


class SuppressedAlready(Conflict):
    code = "already_suppressed"
    message = "The pattern is suppressed already."


class PatternNameTaken(Conflict):
    code = "pattern_name_taken"
    message = "The organization has a custom pattern of that name."


class TooManyPatterns(Conflict):
    code = "too_many_patterns"
    message = "The organization has the maximum number of custom patterns. Remove some first."
