"""Errors of the DLP rules family. A malformed body is 400 on all paths below `dlp-rules`."""

from typing import Final

from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.envelopes import DETAIL, ErrorForm

FORM: Final[ErrorForm] = DETAIL.validating(400)


class DlpRuleNotFound(NotFound):
    message = "DLP rule not found"


class TooManyRules(Conflict):
    code = "too_many_rules"
    message = "The organization has as many DLP rules as it may have. Remove some first."


class DuplicateName(Conflict):
    """A file imported in `skip` mode contains two rules of one name, which is ambiguous."""

    code = "name_conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"rules: {name!r} occurs twice in the import.")
