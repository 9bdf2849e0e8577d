"""Permitted transitions of the validation status."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

Status = Literal[
    "draft", "pending_validation", "in_validation", "needs_remediation", "validated", "deprecated", "unclassified",
]  # fmt: skip
#: Initial statuses of a new entry.
FirstStatus = Literal["draft", "unclassified"]
RiskTier = Literal["tier_1", "tier_2", "tier_3", "tier_4", "unclassified"]

TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    "draft": frozenset({"pending_validation"}),
    "unclassified": frozenset({"pending_validation"}),
    "pending_validation": frozenset({"in_validation"}),
    "in_validation": frozenset({"validated", "needs_remediation", "deprecated"}),
    "needs_remediation": frozenset({"validated", "in_validation"}),
    "validated": frozenset({"deprecated"}),
    "deprecated": frozenset(),
}
assert set(TRANSITIONS) == set(get_args(Status))
