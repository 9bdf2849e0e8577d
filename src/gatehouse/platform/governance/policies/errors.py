"""Errors of the policy rules family. The status of a malformed body, and of a condition that does not compile, is
400."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


class PolicyNotFound(NotFound):
    message = "Policy not found"


class PolicyNameTaken(Conflict):
    code = "policy_exists"
    message = "The organization has a policy rule of this name."


class TooManyPolicies(Conflict):
    code = "too_many_policies"
    message = "The organization has the maximum number of policy rules. Remove some first."


class BadField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])
