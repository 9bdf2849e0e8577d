"""Excludes models that the caller may not use (docs/model-access.md). Every candidate is judged: the named model,
fallbacks, the choices of `auto`, and the targets of policy rules."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.route import ModelNotFound
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.catalog import Candidate


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    """Refuse a model that the caller may not use. The refusal equals the refusal of an unknown model: it repeats the
    name that the caller sent, and never names the catalog entry."""
    policy, model = x.identified.policy, candidate.model
    restricted = model.access == "restricted"
    if policy.access.permits(x.identified.caller.groups, model.provider, model.model_id, restricted=restricted):
        return ALLOW
    return Refuse(ModelNotFound.named(x.call.model))
