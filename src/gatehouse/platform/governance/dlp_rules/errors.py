"""What can go wrong with DLP rules. A malformed body is 400 on all paths below (reference 3, Endpoints, DLP rules)."""

from typing import Final

from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.envelopes import DETAIL, ErrorForm

FORM: Final[ErrorForm] = DETAIL.validating(400)


class DlpRuleNotFound(NotFound):
    message = "DLP rule not found"


class TooManyRules(Conflict):
    code = "too_many_rules"
    message = "The organization has as many DLP rules as it may have. Remove some first."


class NameTwice(Conflict):
    """A file to be imported in `skip` mode names a rule twice: which of the two is meant?"""

    code = "name_conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"rules: {name!r} stands twice in the import.")
