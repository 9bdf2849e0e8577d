"""Errors of the DLP rules family. The status of a malformed body is 400 on all paths below `dlp-rules`."""

from typing import Final

from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


class DlpRuleNotFound(NotFound):
    message = "DLP rule not found"


class TooManyRules(Conflict):
    code = "too_many_rules"
    message = "The organization has the maximum number of DLP rules. Remove some first."


class DuplicateName(Conflict):
    """A file that is imported in `skip` mode contains two rules of the same name, so that it is ambiguous which one
    counts."""

    code = "name_conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"rules: {name!r} occurs twice in the import.")
