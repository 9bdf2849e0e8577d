"""Errors of the routing policies' endpoints."""

from typing import Final
from uuid import UUID

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import CODED, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = CODED


class RoutingPolicyNotFound(NotFound):
    message = "Routing policy not found"


class PolicyConflict(Conflict):
    """There is another enabled policy for the same groups; `conflicting_policy_id` is its id."""

    code = "policy_conflict"

    @classmethod
    def of(cls, policy_id: UUID, name: str, *, default: bool) -> "PolicyConflict":
        conflict = "The organization's default is" if default else "One of the groups already has"
        return cls(
            f"{conflict} the enabled policy {name!r}. Disable it, or change its groups.",
            conflicting_policy_id=str(policy_id),
        )


class TooManyRoutingPolicies(Conflict):
    code = "too_many_policies"
    message = "The organization has the maximum number of routing policies. Remove some first."


class InvalidRoutingPolicyField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])
