"""Excludes models that the organization's model registry does not list as validated, if `registry_enforcement` requires
it (docs/model-registry.md).

Every candidate is judged, after `model_access`, because the refusal must not disclose a model that the caller may not
use."""

from collections.abc import Mapping
from typing import ClassVar, Final

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.stages.candidates.policy_rules import PolicyViolation
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.catalog import Candidate
from gatehouse.policy.rules.evaluation import UNREGISTERED
from gatehouse.policy.snapshot import Snapshot

#: Value of the field `kind` in the events.
KIND: Final = "model_registry"
#: Maximum number of events in the record of a request.
_MAX_EVENTS: Final = 100


class RegistryObjection(PolicyViolation):
    code: ClassVar[str]
    reason: ClassVar[str]


class ModelNotRegistered(RegistryObjection):
    code = "model_not_registered"
    reason = "is not in the organization's model registry"


class ModelNotValidated(RegistryObjection):
    code = "model_not_validated"
    reason = "is not validated in the organization's model registry"


class ModelDeprecated(RegistryObjection):
    code = "model_deprecated"
    reason = "is deprecated in the organization's model registry"


#: The objection by validation status. A status that is not listed gives `ModelNotValidated`.
_OBJECTIONS: Final[Mapping[str, type[RegistryObjection] | None]] = {
    "validated": None,
    "deprecated": ModelDeprecated,
    UNREGISTERED: ModelNotRegistered,
}
#: The codes of all objections.
CODES: Final = tuple(error.code for error in (ModelNotRegistered, ModelNotValidated, ModelDeprecated))


def objection(policy: Snapshot, candidate: Candidate) -> type[RegistryObjection] | None:
    """Return the registry's objection to a model, or None if there is none or the registry is not enforced."""
    if policy.registry_enforcement == "off":
        return None
    return objected(policy.rules.registry_status(_name(candidate)).validation_status)


def objected(validation_status: str) -> type[RegistryObjection] | None:
    """Return the objection to a model with this validation status, or None."""
    return _OBJECTIONS.get(validation_status, ModelNotValidated)


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    policy = x.identified.policy
    error = objection(policy, candidate)
    if error is None:
        return ALLOW
    blocks = policy.registry_enforcement == "block"
    event = RuleEvent(
        kind=KIND,
        rule_id=error.code,
        rule_name="Model registry",
        action="BLOCK" if blocks else "LOG",
        result="matched",
        model=_name(candidate),
    )
    if event not in x.rule_events and len(x.rule_events) < _MAX_EVENTS:
        x.rule_events.append(event)
    return Refuse(error(f"The model {_name(candidate)!r} {error.reason}.", rule_id=error.code)) if blocks else ALLOW


def _name(candidate: Candidate) -> str:
    return f"{candidate.provider.id}/{candidate.model.model_id}"
